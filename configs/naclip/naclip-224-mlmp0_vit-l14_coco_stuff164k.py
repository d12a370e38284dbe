"""NACLIP with CLIP ViT-L/14 + MLMP on COCO-Stuff164k, by MLMP's protocol, without a step of adaptation."""

_base_ = 'naclip-224-mlmp_vit-l14_coco_stuff164k.py'
model = dict(host=dict(steps=0))
