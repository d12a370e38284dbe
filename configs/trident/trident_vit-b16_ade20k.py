"""Trident with CLIP ViT-B/16 on ADE20K."""

_base_ = [
    '../_base_/hosts/trident.py',
    '../_base_/datasets/ade20k.py',
    '../_base_/pipelines/short_side_576.py',
]
model = dict(host=dict(class_names='ade20k', refine_neg_cos=False, refinement=dict(coarse_thresh=0.05)))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
