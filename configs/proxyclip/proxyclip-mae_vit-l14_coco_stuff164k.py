"""ProxyCLIP (MAE) with CLIP ViT-L/14 on COCO-Stuff164k."""

_base_ = 'proxyclip_vit-l14_coco_stuff164k.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='vit_base_patch16_224.mae')))
