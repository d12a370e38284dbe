"""CLIP on coarse windows with CLIP Mini-B/8 on Miniature."""

_base_ = 'clip_mini-b8.py'
model = dict(host=dict(slide_stride=64, logit_scale=100))
