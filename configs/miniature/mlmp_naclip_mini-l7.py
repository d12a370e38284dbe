"""NACLIP + MLMP with the tiny CLIP with patches of 7 on the miniature world."""

_base_ = 'naclip_mini-l7.py'
model = dict(host=dict(_delete_=True, type='MLMP', host=_base_.model.host))
