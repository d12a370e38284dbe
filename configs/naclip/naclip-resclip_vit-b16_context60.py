"""NACLIP + ResCLIP with CLIP ViT-B/16 on Context60."""

_base_ = ['naclip_vit-b16_context60.py', '../_base_/resclip.py']
model = dict(host=dict(plugin=_base_.resclip.context60))
