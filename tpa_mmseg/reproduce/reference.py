"""What the paper prints for a run."""

from __future__ import annotations

from dataclasses import dataclass

from ..catalog import paper
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
    # The evaluation images of the overlap splits are only a part of the test set; the paper has no consistent TPA.
    if run.suite != 'paper' or run.experiment in ('overlap', 'consistency'):
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
    """The paper's costs on an A100, and its size of the bank; empty for suites other than the paper's."""
    if run.suite != 'paper':
        return {}
    size = paper.tables()['bank_kb'].get(run.benchmark)
    return paper.costs(run.row.backbone) | ({} if size is None else {'prototypes_kb': size})
