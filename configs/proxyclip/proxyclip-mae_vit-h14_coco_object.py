"""ProxyCLIP (MAE) with CLIP ViT-H/14 on COCO-Object."""

_base_ = 'proxyclip_vit-h14_coco_object.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='vit_base_patch16_224.mae')))
