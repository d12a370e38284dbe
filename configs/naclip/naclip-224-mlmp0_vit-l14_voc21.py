"""NACLIP at 224 + MLMP without steps with CLIP ViT-L/14 on VOC21."""

_base_ = 'naclip-224-mlmp_vit-l14_voc21.py'
model = dict(host=dict(steps=0))
