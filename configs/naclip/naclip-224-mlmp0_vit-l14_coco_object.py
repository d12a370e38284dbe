"""NACLIP at 224 + MLMP without steps with CLIP ViT-L/14 on COCO-Object."""

_base_ = 'naclip-224-mlmp_vit-l14_coco_object.py'
model = dict(host=dict(steps=0))
