"""The experiments of the paper, read from ``experiments.yaml``: which runs, and which settings of TPA each scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from ..catalog import Row
from ..errors import TPAError
from .runs import FULL, Run, Setting
from .suite import SUITES, Suite


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Args:
        name: What the command line calls it.
        title: What people call it.
        about: What it shows, in a sentence.
        rows, benchmarks: Attributes of a suite: what is run.
        settings: Settings of TPA that are scored in each run; None for a bank of every encoder of the suite.
        most: Test images that a run scores, at most.
        share: Share of the benchmark's test images that a run scores.
        scored: Whether hosts and settings of TPA are scored.
    """

    name: str
    title: str
    about: str
    rows: str = 'rows'
    benchmarks: str = 'benchmarks'
    settings: tuple[Setting, ...] | None = (FULL,)
    most: int | None = None
    share: float = 1.0
    scored: bool = True

    def runs(self, suite: Suite, comparisons: bool = False) -> list[Run]:
        """Returns its runs in a suite, in the order of the paper; then those of other methods, if they are wanted."""
        rows, benchmarks, settings = getattr(suite, self.rows) or (), getattr(suite, self.benchmarks), self.settings
        if settings is None:
            settings = tuple(Setting(key, entry.title, encoder=key) for key, entry in suite.extractors.items())
        planned = [(row, benchmarks, settings) for row in ([rows] if isinstance(rows, Row) else rows)]
        others = suite.comparisons.get(self.name, ()) if comparisons else ()
        planned += [(row, suite.benchmarks, ()) for row in others]
        return [Run(self.name, suite.name, row, name, chosen) for row, names, chosen in planned for name in names]


def _read() -> dict[str, Experiment]:
    found = yaml.safe_load(Path(__file__).with_name('experiments.yaml').read_text(encoding='utf-8'))
    for entry in found.values():
        if 'settings' in entry:
            listed = entry['settings']
            entry['settings'] = None if listed == 'extractors' else tuple(Setting(**setting) for setting in listed)
    return {name: Experiment(name, **entry) for name, entry in found.items()}


EXPERIMENTS: dict[str, Experiment] = _read()


def plan(
    experiment: str,
    suite: str = 'paper',
    hosts: Sequence[str] = (),
    backbones: Sequence[str] = (),
    benchmarks: Sequence[str] = (),
    comparisons: bool = False,
) -> list[Run]:
    """The runs of an experiment, those that pass the filters; an empty filter lets all pass.

    Args:
        experiment: Its name.
        suite: Name of the suite.
        hosts, backbones, benchmarks: The filters.
        comparisons: With the rows of other methods that the paper's table has.
    """
    if experiment not in EXPERIMENTS:
        raise TPAError(f'Unknown experiment {experiment!r}. Choose from: {", ".join(EXPERIMENTS)}; or all.')
    known = suite_of(suite)
    filters = (
        ('--host', hosts, known.hosts, lambda run: run.row.host),
        ('--backbone', backbones, known.backbones, lambda run: run.row.backbone),
        ('--dataset', benchmarks, known.benchmarks, lambda run: run.benchmark),
    )
    found = [run for run in EXPERIMENTS[experiment].runs(known, comparisons) if known.has(run)]
    for option, given, names, of in filters:
        for value in given:
            if value not in names:
                raise TPAError(f'{option} {value} is not in the {suite} suite: it has {", ".join(names)}.')
        found = [run for run in found if not given or of(run) in given]
    return found


def planned_images(run: Run) -> int:
    """Test images that a run scores with the settings of its config; 0 if the suite does not know."""
    experiment, images = EXPERIMENTS[run.experiment], suite_of(run.suite).images.get(run.benchmark, 0)
    return min(math.ceil(experiment.share * images), experiment.most or images)


def suite_of(name: str) -> Suite:
    """The suite of a name."""
    if name not in SUITES:
        raise TPAError(f'Unknown suite {name!r}. Choose from: {", ".join(SUITES)}.')
    return SUITES[name]
