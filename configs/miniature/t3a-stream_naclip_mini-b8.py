"""NACLIP + T3A on the miniature world as on a stream of images: nothing is forgotten."""

_base_ = 't3a_naclip_mini-b8.py'
model = dict(host=dict(scope='stream'))
