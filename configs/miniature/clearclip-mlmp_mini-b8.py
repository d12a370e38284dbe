"""ClearCLIP + MLMP with CLIP Mini-B/8 on Miniature."""

_base_ = 'clearclip_mini-b8.py'
model = dict(host=dict(_delete_=True, type='MLMP', host=_base_.model.host))
