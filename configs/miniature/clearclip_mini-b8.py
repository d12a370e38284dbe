"""ClearCLIP with CLIP Mini-B/8 on Miniature."""

_base_ = [
    '../_base_/hosts/clearclip.py',
    '../_base_/datasets/miniature.py',
    '../_base_/pipelines/as_is.py',
    '../_base_/miniature.py',
]
model = dict(
    encoder=_base_.miniature.encoder,
    host=dict(
        clip=_base_.miniature.clip_b8,
        slide_crop=64,
        slide_stride=32,
        class_names=_base_.miniature.classes,
        window_batch=16,
    ),
)
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
