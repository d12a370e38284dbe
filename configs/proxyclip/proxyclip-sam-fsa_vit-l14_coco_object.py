"""ProxyCLIP (SAM) + FSA with CLIP ViT-L/14 on COCO-Object."""

_base_ = 'proxyclip-sam_vit-l14_coco_object.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0), prob_thd=0.3))
