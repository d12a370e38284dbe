"""Trident with DINO ViT-B/16 and SAM ViT-B inside, and the settings that most datasets share."""

_base_ = ['../runtime.py', '../tpa.py', '../backbones.py']
model = dict(
    host=dict(
        type='Trident',
        clip=_base_.backbones.vit_b16,
        proxy=dict(type='TimmEncoder', model='vit_base_patch16_224.dino'),
        sam=dict(model='vit_b'),
        beta=1.2,
        gamma=3.0,
        logit_scale=40,
        slide_crop=336,
        slide_stride=224,
        cos_fac=1.2,
        refine_neg_cos=True,
        refinement=dict(coarse_thresh=0.2, minimal_area=225, mask_coff=0.005, iou_thresh=0.8, mask_prompt='3d'),
    )
)
