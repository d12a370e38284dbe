"""ProxyCLIP (SAM) + FSA with CLIP ViT-L/14 on VOC20."""

_base_ = 'proxyclip-sam_vit-l14_voc20.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0)))
