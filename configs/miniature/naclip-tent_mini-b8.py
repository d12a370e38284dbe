"""NACLIP + TENT with CLIP Mini-B/8 on Miniature."""

_base_ = 'naclip_mini-b8.py'
model = dict(host=dict(_delete_=True, type='TENT', host=_base_.model.host))
