"""ProxyCLIP with FSA inside and CLIP ViT-L/14 on Cityscapes."""

_base_ = 'proxyclip-fsa_vit-b16_cityscapes.py'
model = dict(host=dict(clip=_base_.backbones.vit_l14))
