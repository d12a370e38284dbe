"""ProxyCLIP with MAE ViT-B/16 inside and CLIP ViT-L/14 on VOC21."""

_base_ = 'proxyclip_vit-l14_voc21.py'
model = dict(host=dict(proxy=_base_.proxies.mae))
