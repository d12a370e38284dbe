"""Scores of a host and of all variants of TPA around it, from one pass over the test images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mmseg.registry import METRICS

from ..datasets import Pool
from ..engine.report_hook import with_bank
from ..evaluation import HostTPAMetric
from .results import BankInfo, ClassScore, RunResult, Scores, VariantResult
from .runs import Setting
from .session import Session


def score_run(session: Session) -> RunResult:
    """Experiments in which every variant takes its share of the config's pool."""
    pool = session.pool()
    members = {variant.key: _share(session, variant, pool) for variant in session.run.settings}
    session.shared.build_banks(session.named(pool), members)
    host, variants = score(session, range(len(session.dataset)))
    return session.result(len(session.dataset), host=host, variants=variants)


def _share(session: Session, variant: Setting, pool: Pool) -> set[str]:
    """Names of a variant's part of the config's pool: what a pool of that size and the same seed has."""
    if variant.fraction == 1:
        return set(pool.names())
    size = max(1, round(variant.fraction * len(pool)))
    return set(session.pool(replace(session.pool_options, size=size, fraction=None, files=None)).names())


def score(
    session: Session, indices: Sequence[int], values: Mapping[str, float] | None = None
) -> tuple[Scores, tuple[VariantResult, ...]]:
    """Scores host and variants on some of the test images.

    Args:
        session: The run, with banks in place.
        indices: Which images.
        values: Key of a variant -> its place on the axis of a plot, where the variant itself does not know it.
    """
    metrics = {variant.key: _metric(session) for variant in session.run.settings}
    done = 0
    session.say(0, len(indices))
    for data in session.images(session.dataset, indices):
        for found in session.shared.predict(data):
            record = {'gt_sem_seg': {'data': found.truth[None]}, 'host_sem_seg': {'data': found.host[None]}}
            for key, metric in metrics.items():
                prediction = {'pred_sem_seg': {'data': found.labels[key][None]}}
                metric.process({}, [{**found.sample.metainfo, **record, **prediction}])
            done += 1
            session.say(done, len(indices))
    results = []
    for variant in session.run.settings:
        metric = metrics[variant.key]
        metric.evaluate(len(indices))
        value = (values or {}).get(variant.key, variant.value)
        results.append(_result(session, variant.key, value, metric.report))
    return Scores(**metric.report['host']), tuple(results)


def _metric(session: Session) -> HostTPAMetric:
    metric = METRICS.build(session.cfg.test_evaluator)
    metric.dataset_meta = session.dataset.metainfo
    return metric


def _result(session: Session, key: str, value: float | None, report: dict) -> VariantResult:
    model = session.shared.models[key]
    summary = model.bank_summary()
    report = with_bank(report, summary)
    bank = None
    if summary is not None:
        size = sum(tensor.numel() * tensor.element_size() for tensor in (model.bank.sums, model.bank.counts))
        counts = {name: summary[name] for name in ('images', 'classes_covered', 'num_classes', 'anchors')}
        bank = BankInfo(**counts, bytes=size)
    return VariantResult(
        key=key,
        value=value,
        tpa=Scores(**report['tpa']),
        delta=Scores(**report['delta']),
        per_class=tuple(ClassScore(**entry) for entry in report['per_class']),
        bank=bank,
    )
