"""NACLIP as MLMP's protocol has it: one prompt, CLIP's own scale, no mask refinement and no threshold."""

_base_ = 'naclip.py'
model = dict(
    host=dict(
        templates=['a photo of a {}'],
        logit_scale=100,
        pamr_steps=0,
    )
)
