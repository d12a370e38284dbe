"""COCO-Object, val2017."""

_base_ = 'one_by_one.py'
test_dataloader = dict(
    dataset=dict(
        type='COCOObjectDataset',
        data_root='{{$TPA_DATA:data}}/coco_object',
        data_prefix=dict(img_path='images/val2017', seg_map_path='annotations/val2017'),
    )
)
