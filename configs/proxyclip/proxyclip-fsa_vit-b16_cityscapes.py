"""ProxyCLIP with FSA inside and CLIP ViT-B/16 on Cityscapes."""

_base_ = 'proxyclip_vit-b16_cityscapes.py'
model = dict(host=dict(slide_stride=80, plugin=dict(type='FSA', sharpness=3.0)))
