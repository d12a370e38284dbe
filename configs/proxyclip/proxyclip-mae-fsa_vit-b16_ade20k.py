"""ProxyCLIP (MAE) + FSA with CLIP ViT-B/16 on ADE20K."""

_base_ = 'proxyclip-mae_vit-b16_ade20k.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=4.5)))
