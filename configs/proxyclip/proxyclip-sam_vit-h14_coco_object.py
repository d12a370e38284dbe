"""ProxyCLIP with SAM ViT-B inside and CLIP ViT-H/14 on COCO-Object."""

_base_ = 'proxyclip_vit-h14_coco_object.py'
model = dict(host=dict(proxy=_base_.proxies.sam))
