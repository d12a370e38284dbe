"""ClearCLIP + ResCLIP with CLIP ViT-B/16 on Cityscapes."""

_base_ = [
    '../_base_/hosts/clearclip_resclip.py',
    '../_base_/datasets/cityscapes.py',
    '../_base_/pipelines/short_side_560.py',
    '../_base_/resclip.py',
]
model = dict(host=dict(class_names='cityscapes', plugin=_base_.resclip.cityscapes))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
