"""ProxyCLIP (MAE) + FSA with CLIP ViT-H/14 on VOC20."""

_base_ = 'proxyclip-mae_vit-h14_voc20.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=4.5)))
