"""ProxyCLIP (MAE) with CLIP ViT-B/16 on VOC21."""

_base_ = 'proxyclip_vit-b16_voc21.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='vit_base_patch16_224.mae')))
