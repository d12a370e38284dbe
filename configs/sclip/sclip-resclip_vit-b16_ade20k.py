"""SCLIP + ResCLIP with CLIP ViT-B/16 on ADE20K."""

_base_ = [
    '../_base_/hosts/sclip_resclip.py',
    '../_base_/datasets/ade20k.py',
    '../_base_/pipelines/short_side_336.py',
    '../_base_/resclip.py',
]
model = dict(host=dict(class_names='ade20k', plugin=_base_.resclip.ade20k))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
