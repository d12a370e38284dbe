"""NACLIP at 224 + MLMP without steps with CLIP ViT-L/14 on Cityscapes."""

_base_ = 'naclip-224-mlmp_vit-l14_cityscapes.py'
model = dict(host=dict(steps=0))
