"""ProxyCLIP with MAE ViT-B/16 inside and CLIP ViT-B/16 on Context60."""

_base_ = 'proxyclip_vit-b16_context60.py'
model = dict(host=dict(proxy=_base_.proxies.mae))
