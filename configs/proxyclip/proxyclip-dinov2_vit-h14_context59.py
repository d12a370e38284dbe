"""ProxyCLIP (DINOv2) with CLIP ViT-H/14 on Context59."""

_base_ = 'proxyclip_vit-h14_context59.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='vit_base_patch14_reg4_dinov2.lvd142m')))
