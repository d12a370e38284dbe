"""SCLIP, with the settings that most datasets share."""

_base_ = ['../runtime.py', '../tpa.py', '../backbones.py']
model = dict(
    host=dict(
        type='SCLIP',
        clip=_base_.backbones.vit_b16,
        logit_scale=40,
        slide_crop=224,
        slide_stride=112,
    )
)
