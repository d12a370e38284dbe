"""ProxyCLIP (DINOv2) with CLIP ViT-H/14 on COCO-Stuff164k."""

_base_ = 'proxyclip_vit-h14_coco_stuff164k.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='vit_base_patch14_reg4_dinov2.lvd142m')))
