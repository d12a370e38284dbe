"""As short_side_336.py, with a short side of 688."""

_base_ = 'short_side_336.py'
test_pipeline = _base_.test_pipeline
test_pipeline[1].scale = (2048, 688)
