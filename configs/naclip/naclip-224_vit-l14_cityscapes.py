"""NACLIP at 224 with CLIP ViT-L/14 on Cityscapes."""

_base_ = [
    '../_base_/hosts/naclip_mlmp.py',
    '../_base_/datasets/cityscapes.py',
    '../_base_/pipelines/mlmp_1120x560.py',
]
model = dict(host=dict(clip=_base_.backbones.vit_l14, class_names='cityscapes'))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
