"""Pascal Context, with background."""

_base_ = 'one_by_one.py'
test_dataloader = dict(
    dataset=dict(
        type='PascalContext60Dataset',
        data_root='{{$TPA_DATA:data}}/VOCdevkit/VOC2010',
        ann_file='ImageSets/SegmentationContext/val.txt',
        data_prefix=dict(img_path='JPEGImages', seg_map_path='SegmentationClassContext'),
    )
)
