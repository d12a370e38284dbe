"""NACLIP with CLIP ViT-L/14 on Cityscapes, by MLMP's protocol."""

_base_ = [
    '../_base_/hosts/naclip_mlmp.py',
    '../_base_/datasets/cityscapes.py',
    '../_base_/pipelines/mlmp_1120x560.py',
]
model = dict(host=dict(class_names='cityscapes'))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
