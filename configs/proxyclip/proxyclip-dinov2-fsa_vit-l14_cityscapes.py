"""ProxyCLIP (DINOv2) + FSA with CLIP ViT-L/14 on Cityscapes."""

_base_ = 'proxyclip-dinov2_vit-l14_cityscapes.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0), slide_stride=80))
