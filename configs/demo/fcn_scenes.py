"""A small FCN, trained by day, tested at dusk with TPA around it. `make demo` paints the scenes."""

default_scope = 'mmseg'
custom_imports = dict(imports=['tpa_mmseg'], allow_failed_imports=False)

num_classes = 8
segmentor = dict(
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
        base_channels=8,
        stem_channels=8,
        num_stages=2,
        strides=(1, 2),
        dilations=(1, 1),
        out_indices=(0, 1),
        norm_cfg=dict(type='BN', requires_grad=True),
    ),
    decode_head=dict(
        type='FCNHead',
        in_channels=16,
        in_index=1,
        channels=16,
        num_convs=1,
        concat_input=False,
        num_classes=num_classes,
        norm_cfg=dict(type='BN', requires_grad=True),
        loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=False),
    ),
    test_cfg=dict(mode='whole'),
)
model = dict(
    type='TPASegmentor',
    host=dict(
        type='SegmentorHost', segmentor=segmentor, checkpoint='{{ fileDirname }}/../../tpa_mmseg/demo/host.safetensors'
    ),
    # An encoder without weights: random projections of patches, enough to tell paints apart.
    encoder=dict(
        type='TimmEncoder',
        model=dict(type='VisionTransformer', img_size=64, patch_size=4, embed_dim=96, depth=1, num_heads=4),
        pretrained=False,
    ),
)
custom_hooks = [dict(type='PrototypeBankHook', pool=dict(size=40, seed=0))]

test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
test_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='BaseSegDataset',
        data_root='data/demo/dusk',
        data_prefix=dict(img_path='images', seg_map_path='labels'),
        img_suffix='.png',
        metainfo=dict(
            classes=('sky', 'meadow', 'lake', 'sand', 'brick', 'tree', 'sun', 'boat'),
            palette=[
                [135, 190, 250],
                [110, 200, 80],
                [30, 90, 200],
                [235, 205, 130],
                [190, 70, 50],
                [20, 110, 50],
                [255, 220, 0],
                [150, 60, 180],
            ],
        ),
        pipeline=test_pipeline,
    ),
)
test_evaluator = dict(type='HostTPAMetric')
test_cfg = dict(type='TestLoop')
randomness = dict(seed=0)
env_cfg = dict(cudnn_benchmark=False, mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0))
