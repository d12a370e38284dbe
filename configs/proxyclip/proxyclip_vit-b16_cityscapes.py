"""ProxyCLIP with CLIP ViT-B/16 on Cityscapes."""

_base_ = [
    '../_base_/hosts/proxyclip.py',
    '../_base_/datasets/cityscapes.py',
    '../_base_/pipelines/short_side_448.py',
]
model = dict(host=dict(class_names='cityscapes', slide_crop=224))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
