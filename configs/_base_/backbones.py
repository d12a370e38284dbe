"""The CLIP models of the paper, for ``model.host.clip``."""

backbones = dict(
    vit_b16=dict(model='ViT-B-16-quickgelu', pretrained='openai'),
    vit_l14=dict(model='ViT-L-14-quickgelu', pretrained='openai'),
    vit_h14=dict(model='ViT-H-14', pretrained='laion2b_s32b_b79k'),
)
