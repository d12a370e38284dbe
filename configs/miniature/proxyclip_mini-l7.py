"""ProxyCLIP with the tiny CLIP with patches of 7 on the miniature world."""

_base_ = 'proxyclip_mini-b8.py'
model = dict(host=dict(clip=_base_.miniature.clip_l7, slide_crop=56, slide_stride=28))
