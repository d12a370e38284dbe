"""SCLIP with FSA inside and CLIP ViT-L/14 on COCO-Object."""

_base_ = 'sclip-fsa_vit-b16_coco_object.py'
model = dict(host=dict(clip=_base_.backbones.vit_l14))
