"""ProxyCLIP (MAE) + FSA with CLIP ViT-H/14 on Context59."""

_base_ = 'proxyclip-mae_vit-h14_context59.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=4.5)))
