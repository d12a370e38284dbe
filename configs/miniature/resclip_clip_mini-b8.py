"""Plain CLIP + ResCLIP with the tiny CLIP with patches of 8 on the miniature world."""

_base_ = ['clip_mini-b8.py', '../_base_/resclip.py']
model = dict(host=dict(plugin=_base_.resclip.miniature))
