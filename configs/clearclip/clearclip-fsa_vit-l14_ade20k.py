"""ClearCLIP with FSA inside and CLIP ViT-L/14 on ADE20K."""

_base_ = 'clearclip-fsa_vit-b16_ade20k.py'
model = dict(host=dict(clip=_base_.backbones.vit_l14))
