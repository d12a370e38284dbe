"""ProxyCLIP (DINOv2) + FSA with CLIP ViT-L/14 on VOC21."""

_base_ = 'proxyclip-dinov2_vit-l14_voc21.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0)))
