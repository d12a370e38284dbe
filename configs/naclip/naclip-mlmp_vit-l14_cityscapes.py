"""NACLIP + MLMP with CLIP ViT-L/14 on Cityscapes."""

_base_ = 'naclip_vit-l14_cityscapes.py'
model = dict(host=dict(_delete_=True, type='MLMP', host=_base_.model.host))
