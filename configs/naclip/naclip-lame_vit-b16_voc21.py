"""NACLIP + LAME with CLIP ViT-B/16 on VOC21."""

_base_ = 'naclip_vit-b16_voc21.py'
model = dict(host=dict(_delete_=True, type='LAME', host=_base_.model.host))
