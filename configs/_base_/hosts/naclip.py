"""NACLIP with its mask refinement, and the settings that most datasets share."""

_base_ = ['../runtime.py', '../tpa.py', '../backbones.py']
model = dict(
    host=dict(
        type='NACLIP',
        clip=_base_.backbones.vit_b16,
        gaussian_std=5,
        logit_scale=40,
        slide_crop=224,
        slide_stride=112,
        pamr_steps=10,
        pamr_dilations=(8, 16),
    )
)
