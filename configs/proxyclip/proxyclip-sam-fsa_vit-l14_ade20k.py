"""ProxyCLIP (SAM) + FSA with CLIP ViT-L/14 on ADE20K."""

_base_ = 'proxyclip-sam_vit-l14_ade20k.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0)))
