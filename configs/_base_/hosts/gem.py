"""GEM."""

_base_ = ['../runtime.py', '../tpa.py', '../backbones.py']
model = dict(
    host=dict(
        type='GEM',
        clip=_base_.backbones.vit_b16,
    )
)
