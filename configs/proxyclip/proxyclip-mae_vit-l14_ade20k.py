"""ProxyCLIP with MAE ViT-B/16 inside and CLIP ViT-L/14 on ADE20K."""

_base_ = 'proxyclip_vit-l14_ade20k.py'
model = dict(host=dict(proxy=_base_.proxies.mae))
