"""SCLIP on the miniature world with its grounds as background, to which unsure pixels go."""

_base_ = 'sclip_mini-b8.py'
model = dict(host=dict(class_names=_base_.miniature.classes_background, prob_thd=0.1))
test_dataloader = dict(dataset=dict(background=True))
