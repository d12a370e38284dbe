"""Trident with CLIP ViT-B/16 on VOC20."""

_base_ = [
    '../_base_/hosts/trident.py',
    '../_base_/datasets/voc20.py',
    '../_base_/pipelines/short_side_336.py',
]
model = dict(host=dict(class_names='voc20', slide_stride=112, cos_fac=0.0))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
