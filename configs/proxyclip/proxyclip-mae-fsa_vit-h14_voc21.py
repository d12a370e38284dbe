"""ProxyCLIP (MAE) + FSA with CLIP ViT-H/14 on VOC21."""

_base_ = 'proxyclip-mae_vit-h14_voc21.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=4.5)))
