"""ProxyCLIP (DINOv2) + FSA with CLIP ViT-H/14 on Context59."""

_base_ = 'proxyclip-dinov2_vit-h14_context59.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=2.3)))
