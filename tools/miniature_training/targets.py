"""What the miniature world is to show, measured: several pools, no pool, and an encoder that knows nothing.

One pass of the host serves all of it. Choices are made on val; test is for the last look.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS, MODELS

from tpa_mmseg.console import render, signed, track
from tpa_mmseg.core import Adapter, ClassProbabilities, Lookup, PrototypeBank, decide
from tpa_mmseg.datasets import Pool, PoolOptions, build_pool
from tpa_mmseg.encoders import PixelNormalization
from tpa_mmseg.engine.bank_builder import BankSpec, build_banks
from tpa_mmseg.evaluation import ClassCounts, HostTPAMetric, report_of
from tpa_mmseg.evaluation.counts import checked_truth, count_classes, count_hits
from tpa_mmseg.miniature.world import CLASSES, IGNORED
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
    model = _model(cfg)
    dataset = DATASETS.build(cfg.test_dataloader.dataset)
    model.set_classes(dataset.metainfo)
    specs = {f'seed {seed}': _spec(cfg, model, pool, seed) for seed in range(SEEDS)}
    specs |= {f'pool {number}': _spec(cfg, model, number, 0) for number in _pools(size)}
    specs['untrained'] = replace(specs['seed 0'], encoder='untrained')
    everything = build_pool(cfg.test_dataloader.dataset, PoolOptions(size=size))
    banks = build_banks(model, everything, specs)
    adapters = {key: Adapter(bank.prototypes(), model.fusion, encoder=bank.encoder) for key, bank in banks.items()}
    adapters['image'] = Adapter(None, model.fusion, model.anchor_rule)
    reports = _score(model, dataset, adapters)
    gains = {key: report['gain']['mIoU'] for key, report in reports.items()}
    first = reports['seed 0']
    return {
        'base': first['host']['mIoU'],
        'zero': sum(not entry['host_iou'] for entry in first['per_class'] if entry['support']),
        'gains': [gains[f'seed {seed}'] for seed in range(SEEDS)],
        'image': gains['image'],
        'untrained': gains['untrained'],
        'pools': {number: gains[f'pool {number}'] for number in _pools(size)},
        'no_anchors': _no_anchors(banks['seed 0'], everything),
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


def _model(cfg: Config) -> TPASegmentor:
    """Host, encoder, and the same encoder without its training."""
    built = []
    for part in (cfg.model.encoder, {**cfg.model.encoder, 'pretrained': False}):
        torch.manual_seed(0)
        built.append(MODELS.build(part))
    model = MODELS.build({**cfg.model, 'encoder': built[0]})
    model.encoders['untrained'] = built[1]
    return model


def _spec(cfg: Config, model: TPASegmentor, size: int, seed: int) -> BankSpec:
    """A bank of some of the scenes."""
    names = build_pool(cfg.test_dataloader.dataset, PoolOptions(size=size, seed=seed)).names()
    return BankSpec(model.anchor_rule, members=frozenset(names))


def _score(model: TPASegmentor, dataset, adapters: Mapping[str, Adapter]) -> dict[str, dict]:
    """The report of every adapter, from one pass of the host."""
    counts = {key: ClassCounts() for key in (None, *adapters)}
    for index in _bar(range(len(dataset)), 'Testing'):
        for evidence, sample in model.look(pseudo_collate([dataset[index]]), model.encoders):
            host, adapted = decide(evidence, tuple(adapters.values()))
            truth = sample.gt_sem_seg.data[0].to(host)
            truth = checked_truth(truth, host.shape, len(CLASSES), IGNORED, evidence.name)
            true = count_classes(truth.labels, len(CLASSES))
            for count, labels in zip(counts.values(), (host, *adapted), strict=True):
                count.add(*count_hits(labels, truth, len(CLASSES)), true)
    host = counts.pop(None).scores()
    return {key: report_of(CLASSES, host, count.scores()) for key, count in counts.items()}


def _no_anchors(bank: PrototypeBank, pool: Pool) -> float:
    """The share of a bank's pixels that the threshold rejects."""
    members = set(bank.pool)
    pixels = sum(pool[i]['inputs'].shape[1:].numel() for i, name in enumerate(pool.names()) if name in members)
    return 1 - sum(bank.coverage().anchors) / pixels


def _one_hot(labels: torch.Tensor) -> torch.Tensor:
    """(C, H, W) probabilities of true labels, zero where they are ignored."""
    known = labels.masked_fill(labels == IGNORED, len(CLASSES))
    return F.one_hot(known, len(CLASSES) + 1)[..., :-1].permute(2, 0, 1).float()


def _bar(items: range, title: str) -> Iterator[int]:
    return track(items, title, unit='scenes', transient=True)
