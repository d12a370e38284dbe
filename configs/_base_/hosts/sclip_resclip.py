"""SCLIP as ResCLIP tests it: its scores reach the original size by way of the network's input."""

_base_ = 'sclip.py'
model = dict(host=dict(resize_via_input=True))
