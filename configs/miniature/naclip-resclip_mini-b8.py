"""NACLIP + ResCLIP with CLIP Mini-B/8 on Miniature."""

_base_ = ['naclip_mini-b8.py', '../_base_/resclip.py']
model = dict(host=dict(plugin=_base_.resclip.miniature))
