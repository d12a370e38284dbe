"""ProxyCLIP (MAE) + FSA with CLIP ViT-B/16 on COCO-Stuff164k."""

_base_ = 'proxyclip-mae_vit-b16_coco_stuff164k.py'
model = dict(host=dict(plugin=dict(type='FSA', sharpness=4.5)))
