"""ProxyCLIP (SAM) with CLIP ViT-H/14 on Context59."""

_base_ = 'proxyclip_vit-h14_context59.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='samvit_base_patch16.sa1b')))
