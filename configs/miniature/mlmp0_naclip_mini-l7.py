"""NACLIP + MLMP without a step of adaptation, with the tiny CLIP with patches of 7 on the miniature world."""

_base_ = 'mlmp_naclip_mini-l7.py'
model = dict(host=dict(steps=0))
