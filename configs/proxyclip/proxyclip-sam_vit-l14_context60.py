"""ProxyCLIP (SAM) with CLIP ViT-L/14 on Context60."""

_base_ = 'proxyclip_vit-l14_context60.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='samvit_base_patch16.sa1b')))
