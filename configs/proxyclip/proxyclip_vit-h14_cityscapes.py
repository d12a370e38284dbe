"""ProxyCLIP with CLIP ViT-H/14 on Cityscapes."""

_base_ = 'proxyclip_vit-b16_cityscapes.py'
model = dict(host=dict(clip=_base_.backbones.vit_h14))
