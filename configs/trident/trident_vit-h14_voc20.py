"""Trident with CLIP ViT-H/14 on VOC20."""

_base_ = 'trident_vit-b16_voc20.py'
model = dict(host=dict(clip=_base_.backbones.vit_h14))
