"""SCLIP + FSA with CLIP ViT-L/14 on ADE20K."""

_base_ = 'sclip_vit-l14_ade20k.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0)))
