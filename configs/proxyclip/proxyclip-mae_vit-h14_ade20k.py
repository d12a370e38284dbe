"""ProxyCLIP (MAE) with CLIP ViT-H/14 on ADE20K."""

_base_ = 'proxyclip_vit-h14_ade20k.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='vit_base_patch16_224.mae')))
