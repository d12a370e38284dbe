"""ClearCLIP with FSA inside and CLIP ViT-L/14 on Context59."""

_base_ = 'clearclip-fsa_vit-b16_context59.py'
model = dict(host=dict(clip=_base_.backbones.vit_l14))
