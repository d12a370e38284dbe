"""NACLIP + MLMP without steps with CLIP Mini-L/7 on Miniature."""

_base_ = 'naclip-mlmp_mini-l7.py'
model = dict(host=dict(steps=0))
