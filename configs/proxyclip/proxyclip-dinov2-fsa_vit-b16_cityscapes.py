"""ProxyCLIP (DINOv2) + FSA with CLIP ViT-B/16 on Cityscapes."""

_base_ = 'proxyclip-dinov2_vit-b16_cityscapes.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0), slide_stride=80))
