"""ProxyCLIP (MAE) + FSA with CLIP ViT-L/14 on Context59."""

_base_ = 'proxyclip-mae_vit-l14_context59.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=4.5)))
