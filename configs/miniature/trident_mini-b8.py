"""Trident with the tiny CLIP with patches of 8 on the miniature world."""

_base_ = [
    '../_base_/hosts/trident.py',
    '../_base_/datasets/miniature.py',
    '../_base_/pipelines/as_is.py',
    '../_base_/miniature.py',
]
model = dict(
    encoder=_base_.miniature.encoder,
    host=dict(
        clip=_base_.miniature.clip_b8,
        proxy=_base_.miniature.encoder,
        sam=_base_.miniature.sam,
        class_names=_base_.miniature.classes,
        slide_crop=64,
        slide_stride=32,
        window_batch=16,
        refinement=dict(minimal_area=49),
    ),
)
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
