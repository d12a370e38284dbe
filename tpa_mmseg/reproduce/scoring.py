"""Scores of a host and of all variants of TPA around it, from one pass over the test images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from mmseg.registry import METRICS
from mmseg.structures import SegDataSample
from torch import Tensor

from ..core import Adapter, Evidence, PrototypeBank, decide
from ..datasets import Pool
from ..errors import TPAError
from ..evaluation import ClassCounts, report_of, with_bank
from ..evaluation.counts import checked_truth, count_classes, count_hits
from .context import RunContext
from .results import BankInfo, ClassScore, RunResult, Scores, VariantResult
from .runs import Setting


def score_run(context: RunContext) -> RunResult:
    """Experiments in which every variant takes its share of the config's pool."""
    pool = context.pool()
    banks = context.build_banks(pool, {variant.key: _share(context, variant, pool) for variant in context.run.settings})
    host, variants = score(context, range(len(context.dataset)), banks)
    return context.result(len(context.dataset), host=host, variants=variants)


def _share(context: RunContext, variant: Setting, pool: Pool) -> frozenset[str] | None:
    """Names of a variant's part of the config's pool: what a pool of that size and the same seed has."""
    if variant.fraction == 1:
        return None
    size = max(1, round(variant.fraction * len(pool)))
    return frozenset(context.pool(replace(context.pool_options, size=size, fraction=None, files=None)).names())


class Prediction(NamedTuple):
    """The labels of one image."""

    sample: SegDataSample
    evidence: Evidence
    truth: Tensor  #: (H, W) as the dataset gives them
    host: Tensor  #: (H, W) by the host alone
    adapted: dict[str, Tensor]  #: key of each adapter -> (H, W)


def predict(context: RunContext, indices: Sequence[int], adapters: Mapping[str, Adapter]) -> Iterator[Prediction]:
    """Labels of the host and of every adapter for this rank's share of some test images, and the progress of it."""
    encoders = {adapter.encoder for adapter in adapters.values()}
    done = 0
    context.say(0, len(indices))
    for data in context.images(context.dataset, context.share(indices)):
        for evidence, sample in context.model.look(data, encoders):
            if 'gt_sem_seg' not in sample:
                raise TPAError(f'{evidence.name} has no ground truth: add LoadAnnotations to the test pipeline.')
            host, adapted = decide(evidence, tuple(adapters.values()))
            truth = sample.gt_sem_seg.data.squeeze(0).to(host)
            yield Prediction(sample, evidence, truth, host, dict(zip(adapters, adapted, strict=True)))
            done += 1
            context.say(done, len(indices))


def score(
    context: RunContext,
    indices: Sequence[int],
    banks: Mapping[str, PrototypeBank],
    values: Mapping[str, float] | None = None,
) -> tuple[Scores, tuple[VariantResult, ...]]:
    """Scores host and variants on some of the test images.

    Args:
        context: The run.
        indices: Which images.
        banks: Bank of every variant that has one.
        values: Key of a variant -> its place on the axis of a plot, where the variant itself does not know it.
    """
    metric = METRICS.build(context.cfg.test_evaluator)
    classes = context.dataset.metainfo['classes']
    adapters = context.adapters(banks)
    images = []
    for found in predict(context, indices, adapters):
        truth = checked_truth(
            found.truth, found.host.shape, len(classes), metric.ignore_index, found.sample.metainfo.get('img_path')
        )
        true = count_classes(truth, len(classes))
        labels = {None: found.host, **found.adapted}
        images.append({key: (*count_hits(each, truth, len(classes)), true) for key, each in labels.items()})
    counts = {key: ClassCounts() for key in (None, *adapters)}
    for image in context.gather(images):
        for key, pixels in image.items():
            counts[key].add(*pixels)
    host = counts[None].scores(metric.nan_to_num)
    results = []
    for variant in context.run.settings:
        report = report_of(classes, host, counts[variant.key].scores(metric.nan_to_num))
        value = (values or {}).get(variant.key, variant.value)
        results.append(_result(variant.key, value, report, banks.get(variant.key)))
    return Scores(**report['host']), tuple(results)


def _result(key: str, value: float | None, report: dict, bank: PrototypeBank | None) -> VariantResult:
    report = with_bank(report, bank)
    info = None
    if bank is not None:
        counts = {name: report['bank'][name] for name in ('images', 'classes_covered', 'num_classes', 'anchors')}
        info = BankInfo(**counts, bytes=bank.sums.nbytes + bank.counts.nbytes)
    return VariantResult(
        key=key,
        value=value,
        tpa=Scores(**report['tpa']),
        gain=Scores(**report['gain']),
        per_class=tuple(ClassScore(**entry) for entry in report['per_class']),
        bank=info,
    )
