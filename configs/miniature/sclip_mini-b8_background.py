"""SCLIP with CLIP Mini-B/8 on Miniature, background."""

_base_ = 'sclip_mini-b8.py'
model = dict(host=dict(class_names=_base_.miniature.classes_background, prob_thd=0.1))
test_dataloader = dict(dataset=dict(background=True))
