"""Cityscapes, val."""

_base_ = 'one_by_one.py'
test_dataloader = dict(
    dataset=dict(
        type='CityscapesDataset',
        data_root='{{$TPA_DATA:data}}/cityscapes',
        data_prefix=dict(img_path='leftImg8bit/val', seg_map_path='gtFine/val'),
    )
)
