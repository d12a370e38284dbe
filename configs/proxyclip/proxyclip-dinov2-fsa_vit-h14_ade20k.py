"""ProxyCLIP (DINOv2) + FSA with CLIP ViT-H/14 on ADE20K."""

_base_ = 'proxyclip-dinov2_vit-h14_ade20k.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=2.3)))
