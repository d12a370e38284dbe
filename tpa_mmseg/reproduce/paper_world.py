"""The paper's world: its hosts on the eight benchmarks."""

from __future__ import annotations

from pathlib import Path

from ..catalog import paper
from ..prepare.layouts import LAYOUTS
from .runs import Run
from .world import CONFIGS, World

_TIMM = {'type': 'TimmEncoder'}


def _paper_config(run: Run) -> Path:
    return CONFIGS / run.host / f'{run.name}.py'


def _paper_images() -> dict[str, int]:
    layouts = {'voc21': 'voc', 'voc20': 'voc', 'context60': 'context', 'context59': 'context'}
    layouts['coco_stuff164k'] = 'coco_stuff'
    return {name: next(iter(LAYOUTS[layouts.get(name, name)].counts)) for name in paper.BENCHMARKS}


def _paper_rows() -> tuple[tuple[str, str], ...]:
    tables = paper.tables()['tables']
    rows = [(row['host'], row['backbone']) for name in ('main_b16', 'main_l14_h14') for row in tables[name]]
    return tuple(dict.fromkeys(rows))


PAPER = World(
    name='paper',
    hosts={
        'sclip': 'SCLIP',
        'clearclip': 'ClearCLIP',
        'naclip': 'NACLIP',
        'proxyclip': 'ProxyCLIP',
        'trident': 'Trident',
    },
    backbones=paper.BACKBONES,
    benchmarks=paper.BENCHMARKS,
    images=_paper_images(),
    rows=_paper_rows(),
    proxies={'sam': 'SAM', 'mae': 'MAE', 'dinov2': 'DINOv2'},
    proxy_backbones=tuple(paper.BACKBONES),
    encoders={
        'sam': {**_TIMM, 'model': 'samvit_base_patch16.sa1b'},
        'mae': {**_TIMM, 'model': 'vit_base_patch16_224.mae'},
        'dinov2': {**_TIMM, 'model': 'vit_base_patch14_dinov2.lvd142m'},
    },
    encoder_names={'sam': 'SAM', 'mae': 'MAE', 'dinov2': 'DINOv2'},
    ablation_host=('naclip', 'vit-b16'),
    ablation_benchmarks=('voc21', 'context59', 'ade20k'),
    growth_host=('trident', 'vit-b16'),
    compositions=(
        ('proxyclip', 'vit-b16', 'standard', None),
        ('proxyclip', 'vit-b16', 'standard', 'fsa'),
        ('naclip', 'vit-l14', 'mlmp_224', None),
        ('naclip', 'vit-l14', 'mlmp_224', 'mlmp'),
    ),
    # The one host with all three backbones and a single CLIP pass per window.
    cost_rows=tuple(('proxyclip', backbone) for backbone in paper.BACKBONES),
    config=_paper_config,
    # Nobody has measured it yet: what docs/reproduce.md expects of one A100 for the main table.
    seconds_per_image=0.5,
)
