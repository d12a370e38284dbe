"""ProxyCLIP with MAE ViT-B/16 inside and CLIP ViT-L/14 on COCO-Object."""

_base_ = 'proxyclip_vit-l14_coco_object.py'
model = dict(host=dict(proxy=_base_.proxies.mae))
