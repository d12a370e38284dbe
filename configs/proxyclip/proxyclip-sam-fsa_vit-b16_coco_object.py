"""ProxyCLIP (SAM) + FSA with CLIP ViT-B/16 on COCO-Object."""

_base_ = 'proxyclip-sam_vit-b16_coco_object.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0), prob_thd=0.3))
