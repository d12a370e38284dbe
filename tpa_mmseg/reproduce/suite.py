"""A suite: the hosts, benchmarks and encoders that experiments are about, read from the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path

from mmengine.config import Config

from ..catalog import CONFIGS, Catalog, Encoder, Row, load
from .runs import Run


@dataclass(frozen=True)
class Suite:
    """What the experiments of the paper are about, in one suite.

    Args:
        name: Key in :data:`SUITES`.
        title: For people.
        hosts, backbones, benchmarks: Name -> name for people, in the order of the tables.
        images: Benchmark -> number of test images.
        rows: Rows of the main table.
        ablation: Row of ``components``, ``k``, ``extractor`` and ``overlap``.
        ablation_benchmarks: Benchmarks of most of them.
        growth: Row of ``bank-size`` and ``repetition``.
        config: The config file of a run.
        variants: Variant of a host -> what is appended to the host's name for people.
        vfm: Rows with other encoders inside ProxyCLIP.
        composition: Rows with and without plug-ins.
        cost: Rows of ``cost``.
        pictures: Rows of ``pictures``.
        picture_benchmarks: Their benchmarks.
        anchors: Row of ``anchors``.
        classes: Row -> benchmark whose classes are shown against their test images.
        comparisons: Experiment -> rows of hosts with another method, which its table has beside TPA.
        extractors: Key -> encoder of the bank, for the experiment ``extractor``.
        has: Whether the suite has a run that an experiment asks for.
    """

    name: str
    title: str
    hosts: Mapping[str, str]
    backbones: Mapping[str, str]
    benchmarks: Mapping[str, str]
    images: Mapping[str, int]
    rows: tuple[Row, ...]
    ablation: Row
    ablation_benchmarks: tuple[str, ...]
    growth: Row
    config: Callable[[Run], Path]
    variants: Mapping[str, str] = field(default_factory=dict)
    vfm: tuple[Row, ...] = ()
    composition: tuple[Row, ...] = ()
    cost: tuple[Row, ...] = ()
    pictures: tuple[Row, ...] = ()
    picture_benchmarks: tuple[str, ...] = ()
    anchors: Row | None = None
    classes: Mapping[str, str] = field(default_factory=dict)
    comparisons: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    extractors: Mapping[str, Encoder] = field(default_factory=dict)
    has: Callable[[Run], bool] = lambda run: True

    @cached_property
    def encoders(self) -> dict[str, dict]:
        """Config of each encoder of :attr:`extractors`."""
        return {key: _config_of(entry.encoder) for key, entry in self.extractors.items()}


def read_suite(catalog: Catalog, name: str) -> Suite:
    """A suite of a catalog."""
    plan = catalog.suites[name]
    found = list(catalog.combinations(name))
    benchmarks = {key: entry for key, entry in catalog.benchmarks.items() if entry.suite == name}
    backbones = {key: entry.title for key, entry in catalog.backbones.items() if entry.suite == name}
    rows = dict.fromkeys(one.row for one in found if one.variant is None)
    return Suite(
        name=name,
        title=plan.title,
        hosts={one.host.name: one.host.title for one in found},
        backbones=backbones,
        benchmarks={key: entry.title for key, entry in benchmarks.items()},
        images={key: catalog.datasets[entry.dataset].images for key, entry in benchmarks.items()},
        # By backbone, as the paper has them.
        rows=tuple(row for backbone in backbones for row in rows if row.backbone == backbone),
        ablation=plan.ablation,
        ablation_benchmarks=plan.ablation_benchmarks,
        growth=plan.growth,
        config=lambda run: catalog.config(run.row, run.benchmark),
        variants={key: entry.title for key, entry in catalog.variants.items()},
        vfm=plan.vfm,
        composition=plan.composition,
        cost=plan.cost,
        pictures=plan.pictures,
        picture_benchmarks=plan.picture_benchmarks,
        anchors=plan.anchors,
        classes=plan.classes,
        comparisons=plan.comparisons,
        extractors={key: catalog.encoders[encoder] for key, encoder in plan.extractors.items()},
        has=lambda run: catalog.find(run.row, run.benchmark) is not None,
    )


def _config_of(encoder: Mapping | str) -> dict:
    """The config of an encoder, which may be a variable of a base config: ``_base_.<file>.<name>``."""
    if isinstance(encoder, str):
        _, file, name = encoder.split('.')
        variables = Config.fromfile(CONFIGS / '_base_' / f'{file}.py')
        encoder = attrgetter(f'{file}.{name}')(variables)
    return {key: value for key, value in encoder.items() if key != '_delete_'}


#: The suites of the catalog.
SUITES: dict[str, Suite] = {name: read_suite(load(), name) for name in load().suites}
