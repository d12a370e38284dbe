"""ProxyCLIP with SAM ViT-B inside and CLIP ViT-H/14 on ADE20K."""

_base_ = 'proxyclip_vit-h14_ade20k.py'
model = dict(host=dict(proxy=_base_.proxies.sam))
