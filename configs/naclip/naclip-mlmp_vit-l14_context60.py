"""NACLIP + MLMP with CLIP ViT-L/14 on Context60."""

_base_ = 'naclip_vit-l14_context60.py'
model = dict(host=dict(_delete_=True, type='MLMP', host=_base_.model.host))
