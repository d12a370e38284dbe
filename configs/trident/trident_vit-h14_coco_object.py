"""Trident with CLIP ViT-H/14 on COCO-Object."""

_base_ = 'trident_vit-b16_coco_object.py'
model = dict(host=dict(clip=_base_.backbones.vit_h14))
