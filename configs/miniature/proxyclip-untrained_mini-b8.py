"""ProxyCLIP (Untrained) with CLIP Mini-B/8 on Miniature."""

_base_ = 'proxyclip_mini-b8.py'
model = dict(host=dict(proxy=_base_.miniature.encoder_untrained))
