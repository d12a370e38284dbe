"""NACLIP + ResCLIP with CLIP ViT-B/16 on VOC21."""

_base_ = ['naclip_vit-b16_voc21.py', '../_base_/resclip.py']
model = dict(host=dict(plugin=_base_.resclip.voc21))
