"""TPA, with one set of options for every host, backbone and dataset."""

model = dict(
    type='TPASegmentor',
    # CLIP's own statistics: hosts take their input like this, the encoder normalizes it again.
    data_preprocessor=dict(
        type='TPADataPreProcessor',
        mean=[122.771, 116.746, 104.094],
        std=[68.501, 66.632, 70.323],
        bgr_to_rgb=True,
    ),
    encoder=dict(type='TimmEncoder', model='vit_base_patch14_dinov2.lvd142m'),
    anchors=dict(k=2.0, k_min=5),
    fusion=dict(alpha=0.5, lambda_=5.0, center=True),
)
# Without a size the pool has 100 images, or all where there are fewer.
custom_hooks = [dict(type='PrototypeBankHook', pool=dict(size={{'$TPA_POOL_SIZE:None'}}, seed=0))]
