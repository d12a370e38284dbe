"""ProxyCLIP (MAE) + FSA with CLIP ViT-H/14 on Cityscapes."""

_base_ = 'proxyclip-mae_vit-h14_cityscapes.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=4.5), slide_stride=80))
