"""ProxyCLIP with MAE ViT-B/16 inside and CLIP ViT-B/16 on COCO-Stuff164k."""

_base_ = 'proxyclip_vit-b16_coco_stuff164k.py'
model = dict(host=dict(proxy=_base_.proxies.mae))
