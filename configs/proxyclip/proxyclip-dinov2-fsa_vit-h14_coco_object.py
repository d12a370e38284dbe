"""ProxyCLIP (DINOv2) + FSA with CLIP ViT-H/14 on COCO-Object."""

_base_ = 'proxyclip-dinov2_vit-h14_coco_object.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=2.3), prob_thd=0.3))
