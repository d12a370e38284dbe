"""ProxyCLIP (SAM) + FSA with CLIP ViT-H/14 on Context60."""

_base_ = 'proxyclip-sam_vit-h14_context60.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=2.3), prob_thd=0.14))
