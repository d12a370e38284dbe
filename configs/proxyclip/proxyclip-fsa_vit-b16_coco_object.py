"""ProxyCLIP with FSA inside and CLIP ViT-B/16 on COCO-Object."""

_base_ = 'proxyclip_vit-b16_coco_object.py'
model = dict(host=dict(prob_thd=0.3, plugin=dict(type='FSA', sharpness=3.0)))
