"""NACLIP with CLIP ViT-L/14 on Context60, by MLMP's protocol."""

_base_ = [
    '../_base_/hosts/naclip_mlmp.py',
    '../_base_/datasets/context60.py',
    '../_base_/pipelines/mlmp_224.py',
]
model = dict(host=dict(class_names='context60'))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
