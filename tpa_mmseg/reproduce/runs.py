"""A run: one pass of one host over one benchmark, in which all settings of an experiment are scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..catalog import Row


@dataclass(frozen=True)
class Setting:
    """A setting of TPA: what differs from the config, in the config's own words.

    Args:
        key: Short name, unique in its experiment.
        title: What tables call it.
        anchors: Changes to ``model.anchors``.
        fusion: Changes to ``model.fusion``.
        bank_scope: ``model.bank_scope``.
        encoder: The bank's encoder: a key of the suite's extractors, ``'clip'`` for the patches of the host's own CLIP,
            or None for the config's.
        fraction: Share of the test images that the pool has, drawn with the config's seed (so that smaller pools are
            part of larger ones); None for the config's own pool.
        pool_seed: Seed of the config's pool; None for the config's.
        axis: Title of the axis of a figure, if the setting is a point on one.
        value: Its place there.
    """

    key: str
    title: str
    anchors: Mapping = field(default_factory=dict, hash=False)
    fusion: Mapping = field(default_factory=dict, hash=False)
    bank_scope: str = 'pool'
    encoder: str | None = None
    fraction: float | None = None
    pool_seed: int | None = None
    axis: str = ''
    value: float | None = None


FULL = Setting('full', 'TPA')


@dataclass(frozen=True)
class Run:
    """One folder of results.

    Args:
        experiment: Name of the experiment.
        suite: Name of the suite.
        row: Host, variant and backbone.
        benchmark: E.g. ``'voc21'``.
        settings: Settings of TPA that are scored beside the host; none for a row that is only compared with TPA.
    """

    experiment: str
    suite: str
    row: Row
    benchmark: str
    settings: tuple[Setting, ...] = (FULL,)

    @property
    def name(self) -> str:
        """Name of the run's folder, unique in its experiment."""
        return f'{self.row}_{self.benchmark}'
