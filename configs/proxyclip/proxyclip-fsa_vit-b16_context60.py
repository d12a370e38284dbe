"""ProxyCLIP with FSA inside and CLIP ViT-B/16 on Context60."""

_base_ = 'proxyclip_vit-b16_context60.py'
model = dict(host=dict(prob_thd=0.14, plugin=dict(type='FSA', sharpness=3.0)))
