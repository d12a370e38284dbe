"""NACLIP + MLMP with CLIP ViT-L/14 on COCO-Object."""

_base_ = 'naclip_vit-l14_coco_object.py'
model = dict(host=dict(_delete_=True, type='MLMP', host=_base_.model.host))
