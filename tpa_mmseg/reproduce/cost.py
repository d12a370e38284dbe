"""What TPA costs: time of each step with its spread, and what is kept in memory."""

from __future__ import annotations

import math
import statistics
import tempfile
from pathlib import Path

from ..core import PrototypeBank
from ..engine.provenance import device_name
from ..engine.timing import StageTimer, run_stages
from .context import RunContext
from .experiments import COST_MEASURED, COST_WARM_UP
from .results import Cost, RunResult, Timing

_MB = 1 << 20


def cost_run(context: RunContext) -> RunResult:
    """Times the steps of the first images of the test set, one image at a time."""
    total = min(COST_WARM_UP + COST_MEASURED, len(context.dataset))
    bank = context.model.new_bank()
    measured = []
    context.say(0, total)
    for number, data in enumerate(context.images(context.dataset, range(total)), start=1):
        measured.append(_measure(context, data, bank))
        context.say(number, total)
    if total > COST_WARM_UP:
        measured = measured[COST_WARM_UP:]
    times, sizes, caches = zip(*measured, strict=True)
    cost = Cost(
        columns={name: _timing([seconds[name] for seconds in times]) for name in times[0]},
        bank_mb=round(_file_size(bank) / _MB, 3),
        cache_mb_per_image=round(statistics.median(caches), 3),
        image_size=tuple(round(statistics.median(sides)) for sides in zip(*sizes, strict=True)),
        num_classes=bank.num_classes,
        device=device_name(context.device),
        image_sizes=(min(sizes, key=math.prod), max(sizes, key=math.prod)),
        cache_mb_range=(min(caches), max(caches)),
        prototypes_kb=2 * bank.num_classes * bank.dim / 1024,
    )
    return context.result(len(times), cost=cost)


def _measure(context: RunContext, data: dict, bank: PrototypeBank) -> tuple[dict[str, float], tuple[int, int], float]:
    """Seconds of every step for one image, the size of the network's input, and megabytes of its cached features."""
    timed = StageTimer(context.device)
    size, phi = run_stages(context.model, data, bank, timed)
    timed.seconds['total'] = timed.seconds['host'] + timed.seconds['encoder']
    return timed.seconds, size, round(phi.half().nbytes / _MB, 3)


def _file_size(bank: PrototypeBank) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'bank.safetensors'
        bank.save(path)
        return path.stat().st_size


def _timing(seconds: list[float]) -> Timing:
    """Median and quartiles in milliseconds."""
    milliseconds = [1000 * value for value in seconds]
    low, _, high = statistics.quantiles(milliseconds, n=4) if len(milliseconds) > 1 else milliseconds * 3
    return Timing(*(round(value, 4) for value in (statistics.median(milliseconds), low, high)), len(milliseconds))
