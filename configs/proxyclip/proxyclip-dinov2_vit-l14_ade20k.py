"""ProxyCLIP with DINOv2 ViT-B/14 inside and CLIP ViT-L/14 on ADE20K."""

_base_ = 'proxyclip_vit-l14_ade20k.py'
model = dict(host=dict(proxy=_base_.proxies.dinov2))
