"""NACLIP + MLMP without a step of adaptation, with the tiny CLIP with patches of 8 on the miniature world."""

_base_ = 'mlmp_naclip_mini-b8.py'
model = dict(host=dict(steps=0))
