"""ClearCLIP with CLIP ViT-B/16 on VOC20."""

_base_ = [
    '../_base_/hosts/clearclip.py',
    '../_base_/datasets/voc20.py',
    '../_base_/pipelines/short_side_448.py',
]
model = dict(host=dict(class_names='voc20'))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
