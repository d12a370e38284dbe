"""ProxyCLIP with MAE ViT-B/16 inside and CLIP ViT-L/14 on VOC20."""

_base_ = 'proxyclip_vit-l14_voc20.py'
model = dict(host=dict(proxy=_base_.proxies.mae))
