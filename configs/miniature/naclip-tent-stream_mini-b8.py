"""NACLIP + TENT on a stream with CLIP Mini-B/8 on Miniature."""

_base_ = 'naclip-tent_mini-b8.py'
model = dict(host=dict(steps=1, scope='stream'))
