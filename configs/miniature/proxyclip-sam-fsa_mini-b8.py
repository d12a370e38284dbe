"""ProxyCLIP (SAM) + FSA with CLIP Mini-B/8 on Miniature."""

_base_ = 'proxyclip-sam_mini-b8.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0)))
