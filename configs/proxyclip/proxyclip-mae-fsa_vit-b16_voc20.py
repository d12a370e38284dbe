"""ProxyCLIP (MAE) + FSA with CLIP ViT-B/16 on VOC20."""

_base_ = 'proxyclip-mae_vit-b16_voc20.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=4.5)))
