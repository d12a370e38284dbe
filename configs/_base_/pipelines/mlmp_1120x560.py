"""As mlmp_224.py, with the size MLMP's protocol has for Cityscapes."""

_base_ = 'mlmp_224.py'
test_pipeline = _base_.test_pipeline
test_pipeline[2].scale = (1120, 560)
