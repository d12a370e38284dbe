"""ProxyCLIP with FSA inside and CLIP ViT-H/14 on Context59."""

_base_ = 'proxyclip-fsa_vit-b16_context59.py'
model = dict(host=dict(clip=_base_.backbones.vit_h14, plugin=dict(sharpness=2.3)))
