"""NACLIP with CLIP ViT-L/14 + MLMP on Context59, by MLMP's protocol, without a step of adaptation."""

_base_ = 'naclip-224-mlmp_vit-l14_context59.py'
model = dict(host=dict(steps=0))
