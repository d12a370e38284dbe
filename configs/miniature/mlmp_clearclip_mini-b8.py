"""ClearCLIP + MLMP with the tiny CLIP with patches of 8 on the miniature world."""

_base_ = 'clearclip_mini-b8.py'
model = dict(host=dict(_delete_=True, type='MLMP', host=_base_.model.host))
