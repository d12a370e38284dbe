"""NACLIP + MLMP without steps with CLIP Mini-B/8 on Miniature."""

_base_ = 'naclip-mlmp_mini-b8.py'
model = dict(host=dict(steps=0))
