"""ProxyCLIP (MAE) + FSA with CLIP ViT-L/14 on Cityscapes."""

_base_ = 'proxyclip-mae_vit-l14_cityscapes.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=4.5), slide_stride=80))
