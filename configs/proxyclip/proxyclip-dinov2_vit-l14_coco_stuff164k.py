"""ProxyCLIP with DINOv2 ViT-B/14 inside and CLIP ViT-L/14 on COCO-Stuff164k."""

_base_ = 'proxyclip_vit-l14_coco_stuff164k.py'
model = dict(host=dict(proxy=_base_.proxies.dinov2))
