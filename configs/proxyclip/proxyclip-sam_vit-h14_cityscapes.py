"""ProxyCLIP with SAM ViT-B inside and CLIP ViT-H/14 on Cityscapes."""

_base_ = 'proxyclip_vit-h14_cityscapes.py'
model = dict(host=dict(proxy=_base_.proxies.sam))
