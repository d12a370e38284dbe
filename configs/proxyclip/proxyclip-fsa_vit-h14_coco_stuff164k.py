"""ProxyCLIP with FSA inside and CLIP ViT-H/14 on COCO-Stuff164k."""

_base_ = 'proxyclip-fsa_vit-b16_coco_stuff164k.py'
model = dict(host=dict(clip=_base_.backbones.vit_h14, plugin=dict(sharpness=2.3)))
