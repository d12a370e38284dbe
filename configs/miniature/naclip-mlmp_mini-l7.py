"""NACLIP + MLMP with CLIP Mini-L/7 on Miniature."""

_base_ = 'naclip_mini-l7.py'
model = dict(host=dict(_delete_=True, type='MLMP', host=_base_.model.host))
