"""ProxyCLIP (DINOv2) + FSA with CLIP ViT-B/16 on Context60."""

_base_ = 'proxyclip-dinov2_vit-b16_context60.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0), prob_thd=0.14))
