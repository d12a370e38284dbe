"""SCLIP + ResCLIP with CLIP ViT-B/16 on VOC20."""

_base_ = [
    '../_base_/hosts/sclip_resclip.py',
    '../_base_/datasets/voc20.py',
    '../_base_/pipelines/short_side_336.py',
    '../_base_/resclip.py',
]
model = dict(host=dict(class_names='voc20_sclip', slide_crop=0, plugin=_base_.resclip.voc20))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
