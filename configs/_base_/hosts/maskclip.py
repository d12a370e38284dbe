"""MaskCLIP without its refinements."""

_base_ = ['../runtime.py', '../tpa.py', '../backbones.py']
model = dict(
    host=dict(
        type='MaskCLIP',
        clip=_base_.backbones.vit_b16,
    )
)
