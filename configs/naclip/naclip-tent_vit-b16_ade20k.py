"""NACLIP + TENT with CLIP ViT-B/16 on ADE20K."""

_base_ = 'naclip_vit-b16_ade20k.py'
model = dict(host=dict(_delete_=True, type='TENT', host=_base_.model.host))
