"""What a section is about: the runs of an experiment in a suite, with names for people and the paper's numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..experiments import planned_images
from ..folders import RunView, State
from ..reference import Reference, reference
from ..results import VariantResult
from ..runs import Run
from ..suite import Suite
from .document import STATE_WORDS

Key = TypeVar('Key', bound=Hashable)


@dataclass(frozen=True)
class Subject:
    """An experiment as it stands.

    Args:
        suite: The suite.
        views: Its runs, in the order of the paper.
        tolerance: How far a number may be from the paper's, in points of mIoU.
        everything: The runs of all experiments of the suite.
    """

    suite: Suite
    views: tuple[RunView, ...]
    tolerance: float
    everything: tuple[RunView, ...]

    @property
    def comparable(self) -> bool:
        """Whether the paper is about this suite."""
        return self.suite.name == 'paper'

    @property
    def done(self) -> list[RunView]:
        return [view for view in self.views if view.state is State.DONE]

    def partial(self, view: RunView) -> str:
        """How many of the planned images a finished run is about, where it is not all; else nothing."""
        planned = planned_images(view.run)
        if view.result is None or not planned or view.result.images == planned:
            return ''
        return f'{view.result.images:,} of {planned:,} images'

    def state(self, view: RunView) -> str:
        """What has become of a run, in a few words."""
        return ', '.join(filter(None, (STATE_WORDS[view.state], self.partial(view))))

    def host(self, run: Run) -> str:
        """The host of a run with what changes it."""
        return self.suite.hosts[run.row.host] + self.suite.variants.get(run.row.variant, '')

    def backbone(self, run: Run) -> str:
        return self.suite.backbones[run.row.backbone]

    def benchmark(self, run: Run) -> str:
        return self.suite.benchmarks[run.benchmark]

    def benchmarks(self) -> list[str]:
        """The benchmarks of the runs, in the order of the suite."""
        used = {view.run.benchmark for view in self.views}
        return [name for name in self.suite.benchmarks if name in used]


@dataclass(frozen=True)
class Entry:
    """A variant of a run: what came out, if it did, and what the paper prints.

    Args:
        view: The run.
        key: Key of the variant.
        title: Its name for people.
        base: mIoU of the host alone.
        found: What the variant scored.
        paper: What the paper prints; empty for suites that it is not about.
    """

    view: RunView
    key: str
    title: str
    base: float | None
    found: VariantResult | None
    paper: Reference

    @property
    def tpa(self) -> float | None:
        return None if self.found is None else self.found.tpa.mIoU

    @property
    def gain(self) -> float | None:
        return None if self.found is None else self.found.gain.mIoU


def entries(views: Sequence[RunView]) -> list[Entry]:
    """All variants of some runs."""
    found = []
    for view in views:
        result = view.result
        base = None if result is None or result.host is None else result.host.mIoU
        for setting in view.run.settings:
            scored = None if result is None else result.variant(setting.key)
            printed = reference(view.run, setting.key)
            found.append(Entry(view, setting.key, setting.title, base, scored, printed))
    return found


def grouped(items: Sequence, key: Callable[..., Key]) -> dict[Key, list]:
    """Items by a key, in the order in which the keys occur."""
    groups: dict[Key, list] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
