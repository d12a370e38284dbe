"""ClearCLIP as ResCLIP tests it, with the scale and the windows that all of its hosts have."""

_base_ = 'clearclip.py'
model = dict(host=dict(logit_scale=40, slide_crop=224, slide_stride=112, resize_via_input=True))
