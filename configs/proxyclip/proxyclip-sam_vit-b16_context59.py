"""ProxyCLIP with SAM ViT-B inside and CLIP ViT-B/16 on Context59."""

_base_ = 'proxyclip_vit-b16_context59.py'
model = dict(host=dict(proxy=_base_.proxies.sam))
