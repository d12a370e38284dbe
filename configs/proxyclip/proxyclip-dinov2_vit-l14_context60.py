"""ProxyCLIP (DINOv2) with CLIP ViT-L/14 on Context60."""

_base_ = 'proxyclip_vit-l14_context60.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='vit_base_patch14_reg4_dinov2.lvd142m')))
