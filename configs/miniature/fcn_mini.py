"""A small FCN of MMSegmentation, trained with labels, on the miniature world: a host that knows no words."""

_base_ = [
    '../_base_/runtime.py',
    '../_base_/tpa.py',
    '../_base_/datasets/miniature.py',
    '../_base_/pipelines/as_is.py',
    '../_base_/miniature.py',
]
norm_cfg = dict(type='BN', requires_grad=True)
model = dict(
    # The segmentor has its own.
    data_preprocessor=None,
    encoder=_base_.miniature.encoder,
    host=dict(
        type='SegmentorHost',
        segmentor=dict(
            type='EncoderDecoder',
            data_preprocessor=dict(
                type='SegDataPreProcessor',
                mean=[123.675, 116.28, 103.53],
                std=[58.395, 57.12, 57.375],
                bgr_to_rgb=True,
                size=(64, 64),
            ),
            backbone=dict(
                type='ResNet',
                depth=18,
                base_channels=16,
                stem_channels=16,
                num_stages=2,
                strides=(1, 2),
                dilations=(1, 1),
                out_indices=(0, 1),
                norm_cfg=norm_cfg,
            ),
            decode_head=dict(
                type='FCNHead',
                in_channels=32,
                in_index=1,
                channels=32,
                num_convs=1,
                concat_input=False,
                num_classes=14,
                norm_cfg=norm_cfg,
                loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=False),
            ),
            test_cfg=dict(mode='whole'),
        ),
        checkpoint='tpa_mmseg://miniature/weights/fcn.safetensors',
    ),
)
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
