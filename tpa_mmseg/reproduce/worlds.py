"""Worlds: the hosts, benchmarks and encoders that experiments are about, and where their configs are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import paper
from ..prepare.layouts import LAYOUTS
from .runs import Run

#: In a checkout a link to ``configs/``, in an installed package a folder.
CONFIGS = Path(__file__).resolve().parent.parent / '.mim' / 'configs'

_TIMM = {'type': 'TimmEncoder'}


@dataclass(frozen=True)
class World:
    """What the experiments of the paper are about, in one world.

    Args:
        name: Key in :data:`WORLDS`.
        hosts: Host -> its name for people.
        backbones: Backbone -> its name.
        benchmarks: Benchmark -> its name, in the order of the tables.
        images: Benchmark -> number of test images, for estimates.
        rows: Host and backbone of each row of the main table.
        proxies: Encoders inside ProxyCLIP in the experiment ``vfm`` -> name.
        proxy_backbones: The backbones of that experiment.
        encoders: Encoders of the bank -> config, for the experiment ``extractor``.
        encoder_names: The same -> name.
        ablation_host: Host and backbone of ``components``, ``k`` and ``extractor``.
        ablation_benchmarks: Benchmarks of ``components`` and ``k``.
        growth_host: Host and backbone of ``bank-size`` and ``repetition``.
        compositions: Host, backbone, protocol and plug-in of ``composition``.
        cost_rows: Host and backbone of ``cost``.
        config: The config file of a run.
    """

    name: str
    hosts: Mapping[str, str]
    backbones: Mapping[str, str]
    benchmarks: Mapping[str, str]
    images: Mapping[str, int]
    rows: tuple[tuple[str, str], ...]
    proxies: Mapping[str, str]
    proxy_backbones: tuple[str, ...]
    encoders: Mapping[str, dict]
    encoder_names: Mapping[str, str]
    ablation_host: tuple[str, str]
    ablation_benchmarks: tuple[str, ...]
    growth_host: tuple[str, str]
    compositions: tuple[tuple[str, str, str, str | None], ...]
    cost_rows: tuple[tuple[str, str], ...]
    config: Callable[[Run], Path]


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
)

WORLDS: dict[str, World] = {world.name: world for world in (PAPER,)}
