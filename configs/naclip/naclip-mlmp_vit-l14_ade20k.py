"""NACLIP + MLMP with CLIP ViT-L/14 on ADE20K."""

_base_ = 'naclip_vit-l14_ade20k.py'
model = dict(host=dict(_delete_=True, type='MLMP', host=_base_.model.host))
