"""ProxyCLIP with SAM ViT-B inside and CLIP ViT-B/16 on Cityscapes."""

_base_ = 'proxyclip_vit-b16_cityscapes.py'
model = dict(host=dict(proxy=_base_.proxies.sam))
