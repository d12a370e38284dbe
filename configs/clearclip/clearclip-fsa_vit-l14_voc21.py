"""ClearCLIP with FSA inside and CLIP ViT-L/14 on VOC21."""

_base_ = 'clearclip-fsa_vit-b16_voc21.py'
model = dict(host=dict(clip=_base_.backbones.vit_l14))
