"""NACLIP + ResCLIP with CLIP ViT-B/16 on COCO-Stuff164k."""

_base_ = ['naclip_vit-b16_coco_stuff164k.py', '../_base_/resclip.py']
model = dict(host=dict(plugin=_base_.resclip.coco_stuff164k))
