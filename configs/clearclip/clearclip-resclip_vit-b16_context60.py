"""ClearCLIP + ResCLIP with CLIP ViT-B/16 on Context60."""

_base_ = [
    '../_base_/hosts/clearclip_resclip.py',
    '../_base_/datasets/context60.py',
    '../_base_/pipelines/short_side_336.py',
    '../_base_/resclip.py',
]
model = dict(host=dict(class_names='context60', prob_thd=0.1, plugin=_base_.resclip.context60))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
