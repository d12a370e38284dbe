"""What the paper prints for a run, and whether a result is near enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..catalog import paper
from .experiments import COMPONENTS
from .layout import RunView
from .results import RunResult
from .runs import Run

#: How far a result may be from the paper, in percentage points of mIoU.
TOLERANCE = 1.5
#: Columns of :class:`~tpa_mmseg.reproduce.results.Cost` -> columns of the paper's table of costs (milliseconds, MB).
COST_COLUMNS = {
    'clip': 'clip',
    'encoder': 'dinov2',
    'total': 'total',
    'bank_encoder_pass': 'bank_dino_pass',
    'bank_update': 'bank_update_max',
    'feature_transfer': 'feature_transfer_max',
    'lookup': 'lookup',
    'cache_mb_per_image': 'cache_mb_per_image',
}


@dataclass(frozen=True)
class Reference:
    """mIoU in the paper, None where it prints nothing.

    Args:
        base: The host alone (with the run's plug-in, if it has one).
        tpa: With the variant of TPA.
        gain: The difference that the paper prints, or that of its two numbers.
    """

    base: float | None = None
    tpa: float | None = None
    gain: float | None = None


def reference(run: Run, variant: str = 'full') -> Reference:
    """What the paper prints for a variant of a run; nothing for worlds that are not the paper's."""
    # The evaluation images of the overlap splits are only a part of the test set.
    if run.world != 'paper' or run.experiment == 'overlap':
        return Reference()
    method = run.plugin or 'base'
    base = _cell(run, method)
    gain = _printed_gain(run, variant)
    if gain is not None:
        return Reference(base, None, gain)
    tpa = _cell(run, f'{run.plugin}+tpa' if run.plugin else 'tpa') if variant == 'full' else None
    return Reference(base, tpa, None if None in (base, tpa) else round(tpa - base, 2))


def cost_reference(run: Run) -> dict[str, float]:
    """The paper's costs on an A100 in our columns; empty for worlds that are not the paper's."""
    if run.world != 'paper':
        return {}
    row = next(row for row in paper.tables()['tables']['cost_a100_ms'] if row['backbone'] == run.backbone)
    return {ours: row[theirs] for ours, theirs in COST_COLUMNS.items()}


def _cell(run: Run, method: str) -> float | None:
    try:
        return paper.scores(run.host, run.backbone, method, run.proxy, run.protocol)[run.benchmark]
    except KeyError:
        return None


def _printed_gain(run: Run, variant: str) -> float | None:
    """The gain of the ablations, of which the paper prints nothing else."""
    tables = paper.tables()['tables']
    if run.experiment == 'components':
        title = next((component.title for component in COMPONENTS if component.key == variant), None)
        rows = [row for row in tables['component_ablation']['rows'] if row['variant'] == title]
    elif run.experiment == 'k':
        rows = [row for row in tables['tau_multiplier']['rows'] if f'k-{row["k"]:g}' == variant]
    elif run.experiment == 'extractor':
        rows = [row for row in tables['extractor'] if row['extractor'] == variant]
    else:
        return None
    return rows[0]['delta'].get(run.benchmark) if rows else None


@dataclass(frozen=True)
class Comparison:
    """One number beside the paper's.

    Args:
        run: The run.
        variant: Key of the variant; None for the host alone.
        quantity: ``'base'``, ``'tpa'`` or ``'gain'``.
        ours: mIoU, or its gain.
        paper: The paper's.
    """

    run: Run
    variant: str | None
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
