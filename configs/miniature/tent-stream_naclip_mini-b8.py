"""NACLIP + TENT on the miniature world as on a stream of images: nothing is forgotten."""

_base_ = 'tent_naclip_mini-b8.py'
model = dict(host=dict(steps=1, scope='stream'))
