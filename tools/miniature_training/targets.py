"""What the miniature world is to show, measured: several pools, no pool, and an encoder that knows nothing.

One pass of the host serves all of it. Choices are made on val; test is for the last look.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from mmengine.config import Config, ConfigDict
from mmengine.dataset import pseudo_collate
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS, MODELS
from tqdm import tqdm

from tpa_mmseg.core import ClassProbabilities, Lookup, PrototypeBank
from tpa_mmseg.datasets import PoolOptions, build_pool
from tpa_mmseg.encoders import PixelNormalization
from tpa_mmseg.evaluation import HostTPAMetric, render
from tpa_mmseg.evaluation.summary import signed
from tpa_mmseg.miniature.world import CLASSES, IGNORED
from tpa_mmseg.reproduce.runs import Setting
from tpa_mmseg.reproduce.shared_pass import SharedPass
from tpa_mmseg.segmentors import TPASegmentor

from .measure import HOSTS

SEEDS = 5
#: Number of images in the pools that show whether more of them help.
POOLS = (10, 30, 100, 300)
_COLUMNS = (
    'Host',
    'Base',
    'At zero',
    'Gain',
    'Deviation',
    'Per image',
    'Untrained',
    'No anchors',
    'Gain with pools of',
)


def measure_targets(config: Path, split: str, size: int, pool: int) -> dict:
    """All that is asked of a host.

    Args:
        config: One of ``configs/miniature``.
        split: Name of the split.
        size: Number of scenes.
        pool: Number of scenes in a pool.

    Returns:
        ``base`` mIoU, number of classes at ``zero``, ``gains`` with each seed, with prototypes of the ``image`` itself,
        with an ``untrained`` encoder and with ``pools`` of several sizes, and the share of pixels that are
        ``no_anchors``.
    """
    cfg = _shorten(Config.fromfile(config), split, size)
    variants = [Setting(f'seed {seed}', '') for seed in range(SEEDS)]
    variants += [Setting(f'pool {number}', '') for number in _pools(size)]
    variants += [Setting('image', '', bank_scope='image'), Setting('untrained', '', encoder='untrained')]
    untrained = {'untrained': {**cfg.model.encoder, 'pretrained': False}}
    shared = SharedPass(cfg.model, variants, untrained, 'cpu')
    dataset = DATASETS.build(cfg.test_dataloader.dataset)
    shared.set_classes(dataset.metainfo)
    members = {key: _draw(cfg, pool, 0) for key in shared.models}
    members |= {f'seed {seed}': _draw(cfg, pool, seed) for seed in range(SEEDS)}
    members |= {f'pool {number}': _draw(cfg, number, 0) for number in _pools(size)}
    everything = build_pool(cfg.test_dataloader.dataset, PoolOptions(size=size))
    named = ((everything.name(i), pseudo_collate([everything[i]])) for i in _bar(range(size), 'Building banks'))
    shared.build_banks(named, members)
    reports = _score(shared, dataset)
    gains = {key: report['delta']['mIoU'] for key, report in reports.items()}
    first = reports['seed 0']
    return {
        'base': first['host']['mIoU'],
        'zero': sum(not entry['host_iou'] for entry in first['per_class'] if entry['support']),
        'gains': [gains[f'seed {seed}'] for seed in range(SEEDS)],
        'image': gains['image'],
        'untrained': gains['untrained'],
        'pools': {number: gains[f'pool {number}'] for number in _pools(size)},
        'no_anchors': _no_anchors(shared.models['seed 0'], everything, members['seed 0']),
    }


def mean_and_deviation(gains: list[float]) -> tuple[float, float]:
    """Over seeds: the mean, and the standard deviation of one seed."""
    return statistics.mean(gains), statistics.stdev(gains)


def table(found: Mapping[str, dict], markdown: bool = False) -> str:
    """A row for each host. Args: found: what :func:`measure_targets` gave for each; markdown: for a page."""
    return render(_COLUMNS, [_row(*entry) for entry in found.items()], align='lrrrrrrrl', markdown=markdown)


def _row(host: str, numbers: dict) -> list:
    mean, deviation = mean_and_deviation(numbers['gains'])
    return [
        HOSTS[host],
        numbers['base'],
        numbers['zero'],
        signed(mean),
        deviation,
        signed(numbers['image']),
        signed(numbers['untrained']),
        f'{100 * numbers["no_anchors"]:.1f} %',
        ', '.join(f'{size}: {signed(gain)}' for size, gain in numbers['pools'].items()),
    ]


@torch.no_grad()
def prototypes_of_truth(config: Path, split: str, size: int, pool: int) -> float:
    """The mIoU of prototypes that are made with the true labels and used alone: how good the encoder could be.

    A diagnostic, the only place where a bank sees labels. Args: as for :func:`measure_targets`.
    """
    cfg = _shorten(Config.fromfile(config), split, size)
    dataset = DATASETS.build(cfg.test_dataloader.dataset)
    encoder = MODELS.build(cfg.model.encoder)
    preprocessor = MODELS.build(cfg.model.data_preprocessor)
    metric = HostTPAMetric()
    metric.dataset_meta = dataset.metainfo
    bank = PrototypeBank(len(CLASSES), encoder.dim)
    normalization = PixelNormalization.of(preprocessor)
    chosen = set(PoolOptions(size=pool).draw(size))
    features = []
    for index in _bar(range(size), 'Encoding'):
        data = preprocessor(pseudo_collate([dataset[index]]), False)
        features.append(encoder(data['inputs'][0], normalization))
        truth = data['data_samples'][0].gt_sem_seg.data[0]
        if index in chosen:
            bank.update(ClassProbabilities(_one_hot(truth), tuple(truth.shape)), features[-1])
    for index, phi in enumerate(features):
        sample = dataset[index]['data_samples']
        truth = sample.gt_sem_seg.data
        lookup = Lookup(bank.prototypes(), phi, tuple(truth.shape[1:]))
        labels = lookup.band(0, truth.shape[1]).argmax(0)[None]
        metric.process({}, [{'gt_sem_seg': {'data': truth}, 'pred_sem_seg': {'data': labels}}])
    return metric.evaluate(size)['mIoU']


def _shorten(cfg: Config, split: str, size: int) -> Config:
    init_default_scope('mmseg')
    cfg.test_dataloader.dataset.update(split=split, size=size)
    return cfg


def _pools(size: int) -> list[int]:
    return [number for number in POOLS if number <= size]


def _draw(cfg: ConfigDict, size: int, seed: int) -> set[str]:
    return set(build_pool(cfg.test_dataloader.dataset, PoolOptions(size=size, seed=seed)).names())


def _score(shared: SharedPass, dataset) -> dict[str, dict]:
    """The report of every variant."""
    metrics = {key: HostTPAMetric() for key in shared.models}
    for metric in metrics.values():
        metric.dataset_meta = dataset.metainfo
    for index in _bar(range(len(dataset)), 'Testing'):
        for found in shared.predict(pseudo_collate([dataset[index]])):
            record = {'gt_sem_seg': {'data': found.truth[None]}, 'host_sem_seg': {'data': found.host[None]}}
            for key, metric in metrics.items():
                metric.process({}, [{**record, 'pred_sem_seg': {'data': found.labels[key][None]}}])
    for metric in metrics.values():
        metric.evaluate(len(dataset))
    return {key: metric.report for key, metric in metrics.items()}


def _no_anchors(model: TPASegmentor, pool, members: set[str]) -> float:
    """The share of the pool's pixels that the threshold rejects."""
    pixels = sum(pool[i]['inputs'].shape[1:].numel() for i, name in enumerate(pool.names()) if name in members)
    return 1 - model.bank_summary()['anchors'] / pixels


def _one_hot(labels: torch.Tensor) -> torch.Tensor:
    """(C, H, W) probabilities of true labels, zero where they are ignored."""
    known = labels.masked_fill(labels == IGNORED, len(CLASSES))
    return F.one_hot(known, len(CLASSES) + 1)[..., :-1].permute(2, 0, 1).float()


def _bar(items: range, title: str) -> Iterator[int]:
    return tqdm(items, desc=title, unit='scene', leave=False)
