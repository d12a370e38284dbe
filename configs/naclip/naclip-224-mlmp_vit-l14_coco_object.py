"""NACLIP at 224 + MLMP with CLIP ViT-L/14 on COCO-Object."""

_base_ = 'naclip-224_vit-l14_coco_object.py'
model = dict(host=dict(_delete_=True, type='MLMP', host=_base_.model.host, scope='batch'))
test_dataloader = dict(batch_size=2, sampler=dict(_delete_=True, type='WholeBatchSampler', batch_size=2))
