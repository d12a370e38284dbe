"""How a test runs: one image at a time, host and TPA scored together."""

default_scope = 'mmseg'
custom_imports = dict(imports=['tpa_mmseg'], allow_failed_imports=False)

test_cfg = dict(type='TestLoop')
test_evaluator = dict(type='HostTPAMetric')
visualizer = dict(type='SegLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')])
randomness = dict(seed=0)
env_cfg = dict(cudnn_benchmark=False, mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0))
