"""ClearCLIP + ResCLIP with CLIP ViT-B/16 on COCO-Object."""

_base_ = [
    '../_base_/hosts/clearclip_resclip.py',
    '../_base_/datasets/coco_object.py',
    '../_base_/pipelines/short_side_336.py',
    '../_base_/resclip.py',
]
model = dict(host=dict(class_names='coco_object_sclip', prob_thd=0.1, plugin=_base_.resclip.coco_object))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
