"""ProxyCLIP (SAM) with CLIP ViT-B/16 on Context60."""

_base_ = 'proxyclip_vit-b16_context60.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='samvit_base_patch16.sa1b')))
