"""The miniature world, test: painted as it is read, so that there are no files to prepare."""

_base_ = 'one_by_one.py'
test_dataloader = dict(
    num_workers=0,
    dataset=dict(type='MiniatureDataset', split='test', size=300),
)
