"""NACLIP at 224 with CLIP ViT-L/14 on VOC20."""

_base_ = [
    '../_base_/hosts/naclip_mlmp.py',
    '../_base_/datasets/voc20.py',
    '../_base_/pipelines/mlmp_224.py',
]
model = dict(host=dict(clip=_base_.backbones.vit_l14, class_names='voc20_sclip'))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
