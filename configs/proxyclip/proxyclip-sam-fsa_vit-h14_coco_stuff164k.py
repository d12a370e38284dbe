"""ProxyCLIP (SAM) + FSA with CLIP ViT-H/14 on COCO-Stuff164k."""

_base_ = 'proxyclip-sam_vit-h14_coco_stuff164k.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=2.3)))
