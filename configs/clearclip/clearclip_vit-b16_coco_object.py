"""ClearCLIP with CLIP ViT-B/16 on COCO-Object."""

_base_ = [
    '../_base_/hosts/clearclip.py',
    '../_base_/datasets/coco_object.py',
    '../_base_/pipelines/short_side_448.py',
]
model = dict(host=dict(class_names='coco_object', prob_thd=0.4))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
