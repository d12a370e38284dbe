"""SCLIP + FSA with the tiny CLIP with patches of 8 on the miniature world."""

_base_ = 'sclip_mini-b8.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0)))
