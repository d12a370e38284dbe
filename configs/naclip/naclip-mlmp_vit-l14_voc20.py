"""NACLIP + MLMP with CLIP ViT-L/14 on VOC20."""

_base_ = 'naclip_vit-l14_voc20.py'
model = dict(host=dict(_delete_=True, type='MLMP', host=_base_.model.host))
