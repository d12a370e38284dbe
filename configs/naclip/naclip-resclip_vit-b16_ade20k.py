"""NACLIP + ResCLIP with CLIP ViT-B/16 on ADE20K."""

_base_ = ['naclip_vit-b16_ade20k.py', '../_base_/resclip.py']
model = dict(host=dict(plugin=_base_.resclip.ade20k))
