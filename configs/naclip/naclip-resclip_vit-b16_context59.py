"""NACLIP + ResCLIP with CLIP ViT-B/16 on Context59."""

_base_ = ['naclip_vit-b16_context59.py', '../_base_/resclip.py']
model = dict(host=dict(plugin=_base_.resclip.context59))
