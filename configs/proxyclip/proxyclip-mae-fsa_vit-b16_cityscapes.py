"""ProxyCLIP (MAE) + FSA with CLIP ViT-B/16 on Cityscapes."""

_base_ = 'proxyclip-mae_vit-b16_cityscapes.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=4.5), slide_stride=80))
