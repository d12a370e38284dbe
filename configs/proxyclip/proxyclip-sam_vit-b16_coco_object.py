"""ProxyCLIP with SAM ViT-B inside and CLIP ViT-B/16 on COCO-Object."""

_base_ = 'proxyclip_vit-b16_coco_object.py'
model = dict(host=dict(proxy=_base_.proxies.sam))
