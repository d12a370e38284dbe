"""ProxyCLIP (MAE) + FSA with CLIP ViT-B/16 on COCO-Object."""

_base_ = 'proxyclip-mae_vit-b16_coco_object.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=4.5), prob_thd=0.3))
