"""Pascal VOC 2012 without background."""

_base_ = 'one_by_one.py'
test_dataloader = dict(
    dataset=dict(
        type='PascalVOC20Dataset',
        data_root='{{$TPA_DATA:data}}/VOCdevkit/VOC2012',
        ann_file='ImageSets/Segmentation/val.txt',
        data_prefix=dict(img_path='JPEGImages', seg_map_path='SegmentationClass'),
    )
)
