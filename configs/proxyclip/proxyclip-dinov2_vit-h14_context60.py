"""ProxyCLIP with DINOv2 ViT-B/14 inside and CLIP ViT-H/14 on Context60."""

_base_ = 'proxyclip_vit-h14_context60.py'
model = dict(host=dict(proxy=_base_.proxies.dinov2))
