"""ProxyCLIP (MAE) with CLIP ViT-L/14 on Context59."""

_base_ = 'proxyclip_vit-l14_context59.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='vit_base_patch16_224.mae')))
