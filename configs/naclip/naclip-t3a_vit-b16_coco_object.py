"""NACLIP + T3A with CLIP ViT-B/16 on COCO-Object."""

_base_ = 'naclip_vit-b16_coco_object.py'
model = dict(host=dict(_delete_=True, type='T3A', host=_base_.model.host))
