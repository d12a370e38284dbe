"""Trident with CLIP ViT-B/16 on COCO-Stuff164k."""

_base_ = [
    '../_base_/hosts/trident.py',
    '../_base_/datasets/coco_stuff164k.py',
    '../_base_/pipelines/short_side_448.py',
]
model = dict(host=dict(class_names='coco_stuff164k', refinement=dict(coarse_thresh=0.05)))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
