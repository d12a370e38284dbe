"""SCLIP with CLIP ViT-B/16 on Cityscapes."""

_base_ = [
    '../_base_/hosts/sclip.py',
    '../_base_/datasets/cityscapes.py',
    '../_base_/pipelines/short_side_560.py',
]
model = dict(host=dict(class_names='cityscapes'))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
