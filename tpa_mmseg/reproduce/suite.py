"""A suite: the hosts, benchmarks and encoders that experiments are about, read from the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path

from mmengine.config import Config

from ..catalog import CONFIGS, Catalog, Encoder, Row, SuitePlan, load
from .runs import Run


@dataclass(frozen=True, kw_only=True)
class Suite(SuitePlan):
    """What the experiments of the paper are about, in one suite: its plan, and what the plan's names stand for.

    Args:
        hosts, backbones, benchmarks: Name -> name for people, in the order of the tables.
        images: Benchmark -> number of test images.
        rows: Rows of the main table.
        config: The config file of a run.
        variants: Variant of a host -> what is appended to the host's name for people.
        extractors: Key -> encoder of the bank, for the experiment ``extractor``.
        has: Whether the suite has a run that an experiment asks for.
    """

    hosts: Mapping[str, str]
    backbones: Mapping[str, str]
    benchmarks: Mapping[str, str]
    images: Mapping[str, int]
    rows: tuple[Row, ...]
    config: Callable[[Run], Path]
    variants: Mapping[str, str] = field(default_factory=dict)
    extractors: Mapping[str, Encoder] = field(default_factory=dict)
    has: Callable[[Run], bool] = lambda run: True

    @cached_property
    def encoders(self) -> dict[str, dict]:
        """Config of each encoder of :attr:`extractors`."""
        return {key: _config_of(entry.encoder) for key, entry in self.extractors.items()}


def read_suite(catalog: Catalog, name: str) -> Suite:
    """A suite of a catalog."""
    plan = vars(catalog.suites[name])
    found = list(catalog.combinations(name))
    benchmarks = {key: entry for key, entry in catalog.benchmarks.items() if entry.suite == name}
    backbones = {key: entry.title for key, entry in catalog.backbones.items() if entry.suite == name}
    rows = dict.fromkeys(one.row for one in found if one.variant is None)
    extractors = {key: catalog.encoders[encoder] for key, encoder in plan['extractors'].items()}
    return Suite(
        **{**plan, 'extractors': extractors},
        hosts={one.host.name: one.host.title for one in found},
        backbones=backbones,
        benchmarks={key: entry.title for key, entry in benchmarks.items()},
        images={key: catalog.datasets[entry.dataset].images for key, entry in benchmarks.items()},
        # By backbone, as the paper has them.
        rows=tuple(row for backbone in backbones for row in rows if row.backbone == backbone),
        config=lambda run: catalog.config(run.row, run.benchmark),
        variants={key: entry.title for key, entry in catalog.variants.items()},
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
