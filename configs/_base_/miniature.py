"""The words and the tiny networks of the miniature world, which take the place of the real ones."""

miniature = dict(
    classes=[
        'grass',
        'water',
        'sand',
        'brick',
        'wood',
        'cloud',
        'zebra',
        'ladybug',
        'chessboard',
        'flower',
        'wheel',
        'target',
        'star',
        'net',
    ],
    # The first class is the background, with a word for each of the grounds.
    classes_background=[
        ['grass', 'water', 'sand', 'brick', 'wood', 'cloud'],
        'zebra',
        'ladybug',
        'chessboard',
        'flower',
        'wheel',
        'target',
        'star',
        'net',
    ],
    # For ``model.host.clip``: in the place of ViT-B/16 ...
    clip_b8=dict(
        _delete_=True,
        model=dict(
            embed_dim=64,
            quick_gelu=True,
            vision_cfg=dict(image_size=64, patch_size=8, width=96, layers=4, head_width=32),
            text_cfg=dict(context_length=32, vocab_size=101, width=64, heads=2, layers=2),
        ),
        pretrained='tpa_mmseg://miniature/weights/clip.safetensors',
    ),
    # ... and of ViT-L/14.
    clip_l7=dict(
        _delete_=True,
        model=dict(
            embed_dim=64,
            quick_gelu=True,
            vision_cfg=dict(image_size=56, patch_size=7, width=96, layers=4, head_width=32),
            text_cfg=dict(context_length=32, vocab_size=101, width=64, heads=2, layers=2),
        ),
        pretrained='tpa_mmseg://miniature/weights/clip_p7.safetensors',
    ),
    # In the place of DINOv2 and DINO, for ``model.encoder`` and ``model.host.proxy``.
    encoder=dict(
        _delete_=True,
        type='TimmEncoder',
        model=dict(img_size=48, patch_size=8, embed_dim=96, depth=4, num_heads=3),
        pretrained='tpa_mmseg://miniature/weights/encoder.safetensors',
    ),
    # For ``model.host.sam``.
    sam=dict(
        _delete_=True,
        model=dict(
            embed_dim=96,
            depth=4,
            num_heads=3,
            global_attn_indexes=(1, 3),
            window_size=8,
            image_size=256,
            prompt_dim=64,
            decoder_heads=4,
            decoder_mlp=128,
            iou_hidden=64,
            mask_in_chans=16,
        ),
        checkpoint='tpa_mmseg://miniature/weights/sam.safetensors',
    ),
    # Its image encoder, as an encoder of banks and inside hosts.
    sam_encoder=dict(
        _delete_=True,
        type='TimmEncoder',
        model=dict(
            type='VisionTransformerSAM',
            img_size=256,
            patch_size=16,
            embed_dim=96,
            depth=4,
            num_heads=3,
            neck_chans=64,
            global_attn_indexes=(1, 3),
            window_size=8,
            use_rel_pos=True,
        ),
        pretrained='tpa_mmseg://miniature/weights/sam.safetensors',
    ),
)
# What an encoder without training is good for.
miniature['encoder_untrained'] = dict(miniature['encoder'], pretrained=False)
# Long and short side of scenes, about: tpa_mmseg.segment shrinks larger images to it.
largest_image = (640, 160)
