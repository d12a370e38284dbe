"""Trident with CLIP ViT-B/16 on COCO-Object."""

_base_ = [
    '../_base_/hosts/trident.py',
    '../_base_/datasets/coco_object.py',
    '../_base_/pipelines/short_side_448.py',
]
model = dict(host=dict(class_names='coco_object_proxyclip', prob_thd=0.25, refinement=dict(coarse_thresh=0.25)))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
