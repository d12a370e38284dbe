"""NACLIP + MLMP with CLIP ViT-L/14 on COCO-Stuff164k."""

_base_ = 'naclip_vit-l14_coco_stuff164k.py'
model = dict(host=dict(_delete_=True, type='MLMP', host=_base_.model.host))
