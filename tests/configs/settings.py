"""The settings of the original implementations, typed in from their descriptions and not from our configs."""

from __future__ import annotations

WHOLE = 0  # the whole image instead of windows
VOC, CONTEXT, COCO = 'VOCdevkit/VOC2012', 'VOCdevkit/VOC2010', 'images/val2017'

# benchmark: class of the dataset, folder, images, labels, list, classes
DATASETS = {
    'voc21': ('PascalVOCDataset', VOC, 'JPEGImages', 'SegmentationClass', 'Segmentation', 21),
    'voc20': ('PascalVOC20Dataset', VOC, 'JPEGImages', 'SegmentationClass', 'Segmentation', 20),
    'context60': (
        'PascalContext60Dataset',
        CONTEXT,
        'JPEGImages',
        'SegmentationClassContext',
        'SegmentationContext',
        60,
    ),
    'context59': (
        'PascalContext59Dataset',
        CONTEXT,
        'JPEGImages',
        'SegmentationClassContext',
        'SegmentationContext',
        59,
    ),
    'coco_object': ('COCOObjectDataset', 'coco_object', COCO, 'annotations/val2017', None, 81),
    'coco_stuff164k': ('COCOStuffDataset', 'coco_stuff164k', COCO, 'annotations/val2017', None, 171),
    'cityscapes': ('CityscapesDataset', 'cityscapes', 'leftImg8bit/val', 'gtFine/val', None, 19),
    'ade20k': (
        'ADE20KDataset',
        'ade/ADEChallengeData2016',
        'images/validation',
        'annotations/validation',
        None,
        150,
    ),
}

# short side, window, stride, logit scale, prob_thd, area_thd, queries
SCLIP = {
    'voc21': (336, 224, 112, 65, 0.1, 0.1, 56),
    'voc20': (336, 224, 112, 40, 0, None, 30),
    'context60': (336, 224, 112, 50, 0.1, None, 60),
    'context59': (336, 224, 112, 40, 0, None, 59),
    'coco_object': (336, 224, 112, 50, 0.1, None, 113),
    'coco_stuff164k': (448, 224, 112, 40, 0, None, 171),
    'cityscapes': (560, 224, 112, 40, 0, None, 19),
    'ade20k': (336, 224, 112, 40, 0, None, 150),
}
# short side, window, stride, prob_thd, queries
NACLIP = {
    'voc21': (336, WHOLE, None, 0.1, 56),
    'voc20': (336, WHOLE, None, 0, 30),
    'context60': (336, 224, 112, 0.1, 60),
    'context59': (336, 224, 112, 0, 59),
    'coco_object': (336, 224, 112, 0.1, 113),
    'coco_stuff164k': (336, 224, 112, 0, 171),
    'cityscapes': (560, 224, 112, 0, 19),
    'ade20k': (336, 224, 112, 0, 150),
}
# short side, window, stride, prob_thd, queries
CLEARCLIP = {
    'voc21': (448, 448, 224, 0.5, 21),
    'voc20': (448, 448, 224, 0, 20),
    'context60': (448, 448, 224, 0.15, 60),
    'context59': (448, 448, 224, 0, 59),
    'coco_object': (448, 448, 224, 0.4, 81),
    'coco_stuff164k': (448, 448, 224, 0, 171),
    'cityscapes': (448, 224, 224, 0, 19),
    'ade20k': (448, 448, 224, 0, 150),
}
# short side, window, stride, prob_thd, queries
PROXYCLIP = {
    'voc21': (336, 336, 112, 0.2, 46),
    'voc20': (336, 336, 112, 0, 20),
    'context60': (336, 336, 112, 0.15, 60),
    'context59': (336, 336, 112, 0, 59),
    'coco_object': (336, 336, 112, 0.25, 97),
    'coco_stuff164k': (336, 336, 112, 0, 171),
    'cityscapes': (448, 224, 112, 0, 19),
    'ade20k': (448, 336, 112, 0, 150),
}
# short side, stride, prob_thd, coarse_thresh, cos_fac, refine_neg_cos, queries
TRIDENT = {
    'voc21': (448, 224, 0.2, 0.2, 1.2, True, 46),
    'voc20': (336, 112, 0, 0.2, 0.0, True, 20),
    'context60': (576, 224, 0.15, 0.15, 1.2, True, 60),
    'context59': (576, 224, 0, 0.15, 1.2, True, 59),
    'coco_object': (448, 224, 0.25, 0.25, 1.2, True, 97),
    'coco_stuff164k': (448, 224, 0, 0.05, 1.2, True, 171),
    'cityscapes': (688, 224, 0, 0.1, 3.0, False, 19),
    'ade20k': (576, 224, 0, 0.05, 1.2, False, 150),
}
# What FSA changes in ProxyCLIP's settings.
FSA_IN_PROXYCLIP = {
    'context60': {'prob_thd': 0.14},
    'coco_object': {'prob_thd': 0.30},
    'cityscapes': {'stride': 80},
}
# short side, window, stride, prob_thd, queries, lambda_r, tau_s, lambda_s, temp_thd
RESCLIP = {
    'voc21': (336, WHOLE, None, 0.1, 56, 0.3, 2.2, 0.7, 0.50),
    'context60': (336, 224, 112, 0.1, 60, 0.3, 1.8, 0.7, 0.30),
    'coco_object': (336, 224, 112, 0.1, 113, 0.4, 1.8, 0.7, 0.11),
    'voc20': (336, WHOLE, None, 0, 30, 0.6, 2.1, 0.6, 0.10),
    'context59': (336, 224, 112, 0, 59, 0.4, 1.8, 0.7, 0.25),
    'coco_stuff164k': (336, 224, 112, 0, 171, 0.4, 1.8, 0.7, 0.11),
    'cityscapes': (560, 224, 112, 0, 19, 0.2, 2.1, 0.6, 0.10),
    'ade20k': (336, 224, 112, 0, 150, 0.3, 2.1, 0.7, 0.25),
}

BACKBONES = {
    'vit-b16': ('ViT-B-16-quickgelu', 'openai'),
    'vit-l14': ('ViT-L-14-quickgelu', 'openai'),
    'vit-h14': ('ViT-H-14', 'laion2b_s32b_b79k'),
}
PROXIES = {
    '': 'vit_base_patch8_224.dino',
    'sam': 'samvit_base_patch16.sa1b',
    'mae': 'vit_base_patch16_224.mae',
    'dinov2': 'vit_base_patch14_reg4_dinov2.lvd142m',
}
ROWS = {
    'sclip': ('vit-b16', 'vit-l14'),
    'clearclip': ('vit-b16', 'vit-l14'),
    'naclip': ('vit-b16', 'vit-l14'),
    'proxyclip': ('vit-b16', 'vit-l14', 'vit-h14'),
    'trident': ('vit-b16', 'vit-h14'),
}
# Host and plug-in inside it: backbones.
PLUGINS = {
    ('sclip', 'fsa'): ('vit-b16', 'vit-l14'),
    ('clearclip', 'fsa'): ('vit-b16', 'vit-l14'),
    ('proxyclip', 'fsa'): ('vit-b16', 'vit-l14', 'vit-h14'),
    ('sclip', 'resclip'): ('vit-b16',),
    ('clearclip', 'resclip'): ('vit-b16',),
    ('naclip', 'resclip'): ('vit-b16',),
}
# Host, what goes around it and its class, with the options that differ from its defaults: backbones.
AROUND = {
    ('naclip', '224-mlmp'): ('MLMP', {'scope': 'batch'}, ('vit-l14',)),
    ('naclip', '224-mlmp0'): ('MLMP', {'scope': 'batch', 'steps': 0}, ('vit-l14',)),
    ('naclip', 'mlmp'): ('MLMP', {}, ('vit-l14',)),
    ('naclip', 't3a'): ('T3A', {}, ('vit-b16',)),
    ('naclip', 'lame'): ('LAME', {}, ('vit-b16',)),
    ('naclip', 'tent'): ('TENT', {}, ('vit-b16',)),
}

# What holds for a host on every benchmark, under the names that ``settings`` of a host and Trident's refinement use.
ALWAYS = {
    'sclip': {'attention': 'csa', 'residual': True, 'resize_via_input': False, 'pamr': None},
    'clearclip': {'attention': 'qq', 'residual': False, 'resize_via_input': False, 'pamr': None, 'logit_scale': 50},
    'naclip': {
        'attention': 'naclip',
        'residual': False,
        'gaussian_std': 5,
        'resize_via_input': True,
        'pamr': [10, 8, 16],
        'logit_scale': 40,
    },
    'proxyclip': {'beta': 1.2, 'gamma': 3.0, 'pamr': None, 'logit_scale': 40},
    'trident': {
        'beta': 1.2,
        'gamma': 3.0,
        'pamr': None,
        'logit_scale': 40,
        'minimal_area': 225,
        'mask_coff': 0.005,
        'iou_thresh': 0.8,
        'mask_prompt': '3d',
    },
}
PADDING = {'sclip': 1, 'clearclip': 'patch', 'naclip': 1, 'proxyclip': 56, 'trident': 1}


def expected(host: str, variant: str, backbone: str, benchmark: str) -> dict:
    """Everything that a config of a host has to say about a benchmark."""
    if variant == '224':
        return _mlmp(benchmark)
    if variant == 'resclip':
        return _resclip(host, benchmark)
    if variant == 'fsa':
        return _fsa(host, backbone, benchmark)
    crop, area, more = 336, None, {}
    if host == 'sclip':
        side, crop, stride, scale, prob, area, queries = SCLIP[benchmark]
        more = {'logit_scale': scale}
    elif host == 'trident':
        side, stride, prob, coarse, cos_fac, negative, queries = TRIDENT[benchmark]
        more = {'cos_fac': cos_fac, 'refine_neg_cos': negative, 'halves': benchmark == 'cityscapes'}
        more['coarse_thresh'] = coarse
    else:
        table = {'naclip': NACLIP, 'clearclip': CLEARCLIP, 'proxyclip': PROXYCLIP}[host]
        side, crop, stride, prob, queries = table[benchmark]
    return {
        **ALWAYS[host],
        **more,
        'scale': (2048, side),
        'keep_ratio': True,
        'crop': crop,
        'stride': stride,
        'prob_thd': prob,
        'area_thd': area,
        'queries': queries,
    }


def _mlmp(benchmark: str) -> dict:
    """MLMP's protocol: one prompt, CLIP's own scale, no threshold, no mask refinement."""
    return {
        **ALWAYS['naclip'],
        'logit_scale': 100,
        'pamr': None,
        'scale': (1120, 560) if benchmark == 'cityscapes' else (224, 224),
        'keep_ratio': False,
        'crop': 224,
        'stride': 112,
        'prob_thd': 0,
        'area_thd': None,
        'queries': NACLIP[benchmark][-1],
    }


def _fsa(host: str, backbone: str, benchmark: str) -> dict:
    """FSA's own settings inside ProxyCLIP; inside other hosts theirs."""
    sharpness = 2.3 if backbone == 'vit-h14' else 3.0
    plugin = {'type': 'FSA', 'sharpness': sharpness, 'keep': 0.45, 'patch_scale': 20, 'uniform_scale': 35}
    changed = FSA_IN_PROXYCLIP.get(benchmark, {}) if host == 'proxyclip' else {}
    return {**expected(host, '', backbone, benchmark), **changed, 'plugin': plugin}


def _resclip(host: str, benchmark: str) -> dict:
    """One set of settings for all hosts, their own included."""
    side, crop, stride, prob, queries, lambda_r, tau_s, lambda_s, temp_thd = RESCLIP[benchmark]
    pamr = {'pamr_steps': 10, 'pamr_dilations': [8, 16]}
    sfr = {'scale': tau_s, 'weight': lambda_s, 'temp_thd': temp_thd, 'connectivity': 'partial', 'gaussian_std': 5}
    return {
        **ALWAYS[host],
        'logit_scale': 40,
        'resize_via_input': True,
        'scale': (2048, side),
        'keep_ratio': True,
        'crop': crop,
        'stride': stride,
        'prob_thd': prob,
        'area_thd': None,
        'queries': queries,
        'plugin': {
            'type': 'ResCLIP',
            'rcs': {'scale': 2.0, 'weight': lambda_r, 'blocks': [5, 6, 7, 8]},
            'sfr': {**sfr, **pamr},
        },
    }
