"""SCLIP + ResCLIP with CLIP ViT-B/16 on COCO-Stuff164k."""

_base_ = [
    '../_base_/hosts/sclip_resclip.py',
    '../_base_/datasets/coco_stuff164k.py',
    '../_base_/pipelines/short_side_336.py',
    '../_base_/resclip.py',
]
model = dict(host=dict(class_names='coco_stuff164k', plugin=_base_.resclip.coco_stuff164k))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
