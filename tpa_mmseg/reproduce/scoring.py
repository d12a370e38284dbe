"""Scores of a host and of all variants of TPA around it, from one pass over the test images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from mmseg.registry import METRICS
from mmseg.structures import SegDataSample
from torch import Tensor

from ..core import Adapter, PrototypeBank, decide
from ..datasets import Pool
from ..errors import TPAError
from ..evaluation import ClassCounts, report_of, with_bank
from ..evaluation.counts import Truth, checked_truth, count_classes, count_hits
from .context import RunContext
from .results import BankInfo, ClassScore, RunResult, Scores, VariantResult
from .runs import Setting

# Bytes of evidence that are kept where the bank has most of the test images: those go through the networks once.
_CACHE = 4 << 30


def score_run(context: RunContext) -> RunResult:
    """Experiments whose variants have the config's pool, a share of the test images, or a pool of another seed."""
    values, banks = {}, {}
    if any(_own_pool(variant) for variant in context.run.settings):
        context.cfg.model.evidence_cache = context.cfg.model.get('evidence_cache', _CACHE)
        whole = context.pool(replace(context.pool_options, size=None, files=None, fraction=1.0))
        parts = {variant.key: _images(context, variant, whole) for variant in context.run.settings}
        values = {key: len(part) / len(whole) for key, part in parts.items()}
        banks = context.build_banks(whole, parts)
    elif context.run.settings:
        banks = context.build_banks(context.pool())
    host, variants = score(context, range(len(context.dataset)), banks, values)
    return context.result(len(context.dataset), host=host, variants=variants)


def _own_pool(variant: Setting) -> dict:
    """What a variant changes of the config's pool."""
    share = {} if variant.fraction is None else {'size': None, 'files': None, 'fraction': variant.fraction}
    return share if variant.pool_seed is None else {**share, 'seed': variant.pool_seed}


def _images(context: RunContext, variant: Setting, whole: Pool) -> list[int]:
    """Indices of a variant's images among all that there are."""
    if not (own := _own_pool(variant)):
        return context.pool().indices
    return replace(context.pool_options, **own).draw(len(whole))


class Prediction(NamedTuple):
    """The labels of one image."""

    sample: SegDataSample
    truth: Tensor  #: (H, W) as the dataset gives them
    counted: Truth  #: as counts need it
    host: Tensor  #: (H, W) by the host alone
    adapted: dict[str, Tensor]  #: key of each adapter -> (H, W)


def predict(context: RunContext, indices: Sequence[int], adapters: Mapping[str, Adapter]) -> Iterator[Prediction]:
    """Labels of the host and of every adapter for this rank's share of some test images, and the progress of it."""
    encoders = {adapter.encoder for adapter in adapters.values()}
    done, classes = 0, len(context.dataset.metainfo['classes'])
    context.say(0, len(indices))
    for data in context.images(context.dataset, context.share(indices)):
        for evidence, sample in context.model.look(data, encoders):
            if 'gt_sem_seg' not in sample:
                raise TPAError(f'{evidence.name} has no ground truth: add LoadAnnotations to the test pipeline.')
            host, adapted = decide(evidence, tuple(adapters.values()))
            truth = sample.gt_sem_seg.data.squeeze(0).to(host)
            counted = checked_truth(truth, host.shape, classes, context.ignore_index, sample.metainfo.get('img_path'))
            yield Prediction(sample, truth, counted, host, dict(zip(adapters, adapted, strict=True)))
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
        true = count_classes(found.counted.labels, len(classes))
        labels = {None: found.host, **found.adapted}
        images.append({key: (*count_hits(each, found.counted, len(classes)), true) for key, each in labels.items()})
    counts = {key: ClassCounts() for key in (None, *adapters)}
    seen = 0
    for image in context.gather(images):
        for key, pixels in image.items():
            counts[key].add(*pixels)
        seen = seen + (image[None][-1] > 0).long()
    host = counts[None].scores(metric.nan_to_num)
    results = []
    for variant in context.run.settings:
        report = report_of(classes, host, counts[variant.key].scores(metric.nan_to_num))
        for entry, count in zip(report['per_class'], seen.tolist(), strict=True):
            entry['images'] = count
        value = variant.value if variant.value is not None else (values or {}).get(variant.key)
        results.append(_result(variant.key, value, report, banks.get(variant.key)))
    return Scores(**report_of(classes, host)['host']), tuple(results)


def _result(key: str, value: float | None, report: dict, bank: PrototypeBank | None) -> VariantResult:
    report = with_bank(report, bank)
    info = None
    if bank is not None:
        counts = {name: report['bank'][name] for name in ('images', 'classes_covered', 'num_classes', 'anchors')}
        measured = {name: value for name, value in (report['bank']['diagnosis'] or {}).items() if name != 'made_with'}
        info = BankInfo(**counts, bytes=bank.sums.nbytes + bank.counts.nbytes, dim=bank.dim, diagnosis=measured)
    classes = tuple(ClassScore(**entry) for entry in report['per_class'])
    return VariantResult(key, value, Scores(**report['tpa']), Scores(**report['gain']), classes, info)
