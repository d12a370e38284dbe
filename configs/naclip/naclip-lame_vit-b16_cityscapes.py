"""NACLIP + LAME with CLIP ViT-B/16 on Cityscapes."""

_base_ = 'naclip_vit-b16_cityscapes.py'
model = dict(host=dict(_delete_=True, type='LAME', host=_base_.model.host))
