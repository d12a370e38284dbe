"""SCLIP with CLIP Mini-L/7 on Miniature."""

_base_ = 'sclip_mini-b8.py'
model = dict(host=dict(clip=_base_.miniature.clip_l7, slide_crop=56, slide_stride=28))
