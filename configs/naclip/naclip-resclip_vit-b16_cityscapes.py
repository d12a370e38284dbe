"""NACLIP + ResCLIP with CLIP ViT-B/16 on Cityscapes."""

_base_ = ['naclip_vit-b16_cityscapes.py', '../_base_/resclip.py']
model = dict(host=dict(plugin=_base_.resclip.cityscapes))
