"""ProxyCLIP (SAM) with CLIP ViT-B/16 on COCO-Object."""

_base_ = 'proxyclip_vit-b16_coco_object.py'
model = dict(host=dict(proxy=dict(type='TimmEncoder', model='samvit_base_patch16.sa1b')))
