"""NACLIP + ResCLIP with CLIP ViT-B/16 on VOC20."""

_base_ = ['naclip_vit-b16_voc20.py', '../_base_/resclip.py']
model = dict(host=dict(plugin=_base_.resclip.voc20))
