"""ProxyCLIP (DINOv2) with CLIP ViT-B/16 on Cityscapes."""

_base_ = 'proxyclip_vit-b16_cityscapes.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='vit_base_patch14_reg4_dinov2.lvd142m')))
