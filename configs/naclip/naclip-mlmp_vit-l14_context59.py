"""NACLIP + MLMP with CLIP ViT-L/14 on Context59."""

_base_ = 'naclip_vit-l14_context59.py'
model = dict(host=dict(_delete_=True, type='MLMP', host=_base_.model.host))
