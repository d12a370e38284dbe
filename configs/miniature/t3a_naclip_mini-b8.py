"""NACLIP + T3A with the tiny CLIP with patches of 8 on the miniature world."""

_base_ = 'naclip_mini-b8.py'
model = dict(host=dict(_delete_=True, type='T3A', host=_base_.model.host))
