"""ClearCLIP as published, with the settings that most datasets share."""

_base_ = ['../runtime.py', '../tpa.py', '../backbones.py']
model = dict(
    host=dict(
        type='ClearCLIP',
        clip=_base_.backbones.vit_b16,
        logit_scale=50,
        slide_crop=448,
        slide_stride=224,
    )
)
