"""NACLIP at 224 + MLMP without steps with CLIP ViT-L/14 on COCO-Stuff164k."""

_base_ = 'naclip-224-mlmp_vit-l14_coco_stuff164k.py'
model = dict(host=dict(steps=0))
