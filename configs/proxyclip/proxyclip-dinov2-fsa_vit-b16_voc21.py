"""ProxyCLIP (DINOv2) + FSA with CLIP ViT-B/16 on VOC21."""

_base_ = 'proxyclip-dinov2_vit-b16_voc21.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=3.0)))
