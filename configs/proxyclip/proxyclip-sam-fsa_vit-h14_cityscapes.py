"""ProxyCLIP (SAM) + FSA with CLIP ViT-H/14 on Cityscapes."""

_base_ = 'proxyclip-sam_vit-h14_cityscapes.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=2.3), slide_stride=80))
