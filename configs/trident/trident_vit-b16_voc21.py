"""Trident with CLIP ViT-B/16 on VOC21."""

_base_ = [
    '../_base_/hosts/trident.py',
    '../_base_/datasets/voc21.py',
    '../_base_/pipelines/short_side_448.py',
]
model = dict(host=dict(class_names='voc21_proxyclip', prob_thd=0.2))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
