"""SCLIP + ResCLIP with CLIP ViT-B/16 on VOC21."""

_base_ = [
    '../_base_/hosts/sclip_resclip.py',
    '../_base_/datasets/voc21.py',
    '../_base_/pipelines/short_side_336.py',
    '../_base_/resclip.py',
]
model = dict(host=dict(class_names='voc21_sclip', slide_crop=0, prob_thd=0.1, plugin=_base_.resclip.voc21))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
