"""What the paper prints for a run, and whether a result is near enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..catalog import paper
from .folders import RunView
from .results import RunResult
from .runs import Run

#: How far a result may be from the paper, in percentage points of mIoU.
TOLERANCE = 1.5


@dataclass(frozen=True)
class Reference:
    """mIoU in the paper, None where it prints nothing.

    Args:
        base: The host alone (with its variant).
        tpa: With the setting of TPA.
        gain: The difference that the paper prints, or that of its two numbers.
    """

    base: float | None = None
    tpa: float | None = None
    gain: float | None = None


def reference(run: Run, setting: str = 'full') -> Reference:
    """The paper's numbers of a run with a setting of TPA; nothing for suites other than the paper's."""
    # The evaluation images of the overlap splits are only a part of the test set.
    if run.suite != 'paper' or run.experiment == 'overlap':
        return Reference()
    row = str(run.row)
    base = paper.score(row, run.benchmark)
    # Of ablations the paper prints nothing but gains.
    gain = paper.gain(run.experiment, row, setting, run.benchmark)
    if gain is not None:
        return Reference(base, None, gain)
    tpa = paper.score(row, run.benchmark, tpa=True) if setting == 'full' else None
    return Reference(base, tpa, None if None in (base, tpa) else round(tpa - base, 2))


def cost_reference(run: Run) -> dict[str, float]:
    """The paper's costs on an A100; empty for suites other than the paper's."""
    return paper.costs(run.row.backbone) if run.suite == 'paper' else {}


@dataclass(frozen=True)
class Comparison:
    """One number beside the paper's.

    Args:
        run: The run.
        setting: Key of the setting of TPA; None for the host alone.
        quantity: ``'base'``, ``'tpa'`` or ``'gain'``.
        ours: mIoU, or its gain.
        paper: The paper's.
    """

    run: Run
    setting: str | None
    quantity: str
    ours: float
    paper: float

    @property
    def difference(self) -> float:
        return round(self.ours - self.paper, 2)

    def within(self, tolerance: float = TOLERANCE) -> bool:
        return abs(self.difference) <= tolerance


def compare(run: Run, result: RunResult) -> Iterator[Comparison]:
    """Every number of a result that the paper has too."""
    if result.host is None:
        return
    found = [(None, 'base', result.host.mIoU, reference(run).base)]
    for variant in result.variants:
        printed = reference(run, variant.key)
        found.append((variant.key, 'tpa', variant.tpa.mIoU, printed.tpa))
        found.append((variant.key, 'gain', variant.gain.mIoU, printed.gain))
    for key, quantity, ours, theirs in found:
        if ours is not None and theirs is not None:
            yield Comparison(run, key, quantity, ours, theirs)


def compare_all(views: Iterable[RunView]) -> list[Comparison]:
    """Every number of finished runs that the paper has too."""
    return [found for view in views if view.result is not None for found in compare(view.run, view.result)]
