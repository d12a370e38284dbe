"""ProxyCLIP (SAM) with CLIP ViT-L/14 on VOC21."""

_base_ = 'proxyclip_vit-l14_voc21.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='samvit_base_patch16.sa1b')))
