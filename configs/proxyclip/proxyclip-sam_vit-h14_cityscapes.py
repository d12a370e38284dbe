"""ProxyCLIP (SAM) with CLIP ViT-H/14 on Cityscapes."""

_base_ = 'proxyclip_vit-h14_cityscapes.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='samvit_base_patch16.sa1b')))
