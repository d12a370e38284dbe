"""ProxyCLIP with DINO ViT-B/8 inside, and the settings that most datasets share."""

_base_ = ['../runtime.py', '../tpa.py', '../backbones.py']
model = dict(
    host=dict(
        type='ProxyCLIP',
        clip=_base_.backbones.vit_b16,
        proxy=dict(type='TimmEncoder', model='vit_base_patch8_224.dino'),
        beta=1.2,
        gamma=3.0,
        logit_scale=40,
        slide_crop=336,
        slide_stride=112,
    )
)
