"""ProxyCLIP (SAM) with CLIP ViT-L/14 on VOC20."""

_base_ = 'proxyclip_vit-l14_voc20.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='samvit_base_patch16.sa1b')))
