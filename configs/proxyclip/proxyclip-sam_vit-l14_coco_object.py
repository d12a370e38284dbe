"""ProxyCLIP (SAM) with CLIP ViT-L/14 on COCO-Object."""

_base_ = 'proxyclip_vit-l14_coco_object.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='samvit_base_patch16.sa1b')))
