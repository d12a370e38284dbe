"""ProxyCLIP with SAM ViT-B inside and CLIP ViT-B/16 on ADE20K."""

_base_ = 'proxyclip_vit-b16_ade20k.py'
model = dict(host=dict(proxy=_base_.proxies.sam))
