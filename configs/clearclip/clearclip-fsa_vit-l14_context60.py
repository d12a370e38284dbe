"""ClearCLIP with FSA inside and CLIP ViT-L/14 on Context60."""

_base_ = 'clearclip-fsa_vit-b16_context60.py'
model = dict(host=dict(clip=_base_.backbones.vit_l14))
