"""ADE20K, validation."""

_base_ = 'one_by_one.py'
test_dataloader = dict(
    dataset=dict(
        type='ADE20KDataset',
        data_root='{{$TPA_DATA:data}}/ade/ADEChallengeData2016',
        data_prefix=dict(img_path='images/validation', seg_map_path='annotations/validation'),
    )
)
