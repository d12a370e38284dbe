"""ClearCLIP + ResCLIP with CLIP ViT-B/16 on Context59."""

_base_ = [
    '../_base_/hosts/clearclip_resclip.py',
    '../_base_/datasets/context59.py',
    '../_base_/pipelines/short_side_336.py',
    '../_base_/resclip.py',
]
model = dict(host=dict(class_names='context59', plugin=_base_.resclip.context59))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
