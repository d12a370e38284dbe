"""NACLIP + LAME with CLIP ViT-B/16 on Context59."""

_base_ = 'naclip_vit-b16_context59.py'
model = dict(host=dict(_delete_=True, type='LAME', host=_base_.model.host))
