"""NACLIP at 224 with CLIP ViT-L/14 on COCO-Stuff164k."""

_base_ = [
    '../_base_/hosts/naclip_mlmp.py',
    '../_base_/datasets/coco_stuff164k.py',
    '../_base_/pipelines/mlmp_224.py',
]
model = dict(host=dict(clip=_base_.backbones.vit_l14, class_names='coco_stuff164k'))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
