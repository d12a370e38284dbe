"""ProxyCLIP (SAM) + FSA with CLIP ViT-L/14 on Context60."""

_base_ = 'proxyclip-sam_vit-l14_context60.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0), prob_thd=0.14))
