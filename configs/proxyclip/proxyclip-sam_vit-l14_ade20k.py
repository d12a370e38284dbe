"""ProxyCLIP (SAM) with CLIP ViT-L/14 on ADE20K."""

_base_ = 'proxyclip_vit-l14_ade20k.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='samvit_base_patch16.sa1b')))
