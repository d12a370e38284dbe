"""Trident with CLIP ViT-B/16 on Cityscapes."""

_base_ = [
    '../_base_/hosts/trident.py',
    '../_base_/datasets/cityscapes.py',
    '../_base_/pipelines/short_side_688.py',
]
model = dict(
    host=dict(
        class_names='cityscapes', cos_fac=3.0, refine_neg_cos=False, halves=True, refinement=dict(coarse_thresh=0.1)
    ),
)
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
