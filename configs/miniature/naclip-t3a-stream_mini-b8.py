"""NACLIP + T3A on a stream with CLIP Mini-B/8 on Miniature."""

_base_ = 'naclip-t3a_mini-b8.py'
model = dict(host=dict(scope='stream'))
