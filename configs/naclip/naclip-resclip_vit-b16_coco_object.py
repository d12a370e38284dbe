"""NACLIP + ResCLIP with CLIP ViT-B/16 on COCO-Object."""

_base_ = ['naclip_vit-b16_coco_object.py', '../_base_/resclip.py']
model = dict(host=dict(plugin=_base_.resclip.coco_object))
