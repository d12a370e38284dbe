"""ProxyCLIP (MAE) with CLIP ViT-L/14 on Cityscapes."""

_base_ = 'proxyclip_vit-l14_cityscapes.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='vit_base_patch16_224.mae')))
