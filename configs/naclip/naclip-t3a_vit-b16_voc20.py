"""NACLIP + T3A with CLIP ViT-B/16 on VOC20."""

_base_ = 'naclip_vit-b16_voc20.py'
model = dict(host=dict(_delete_=True, type='T3A', host=_base_.model.host))
