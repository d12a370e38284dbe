"""What TPA costs: time of each step with its spread, and what is kept in memory."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict

from ..engine.timing import StageTimer, run_stages
from .context import RunContext
from .experiments import COST_MEASURED, COST_WARM_UP
from .provenance import device_name
from .results import Cost, RunResult, Timing

_MB = 1 << 20


def cost_run(context: RunContext) -> RunResult:
    """Times the steps of the first images of the test set, one image at a time."""
    total = min(COST_WARM_UP + COST_MEASURED, len(context.dataset))
    bank = context.model.new_bank()
    times: dict[str, list[float]] = defaultdict(list)
    sizes: list[tuple[int, int]] = []
    caches: list[float] = []
    context.say(0, total)
    for number, data in enumerate(context.images(context.dataset, range(total))):
        timer = StageTimer(context.device)
        size, phi = run_stages(context.model, data, bank, timer)
        steps = {**timer.seconds, 'total': timer.seconds['host'] + timer.seconds['encoder']}
        if number >= COST_WARM_UP or total <= COST_WARM_UP:
            for name, seconds in steps.items():
                times[name].append(seconds)
            sizes.append(size)
            caches.append(round(phi.half().nbytes / _MB, 3))
        context.say(number + 1, total)
    cost = Cost(
        columns={name: _timing(values) for name, values in times.items()},
        bank_mb=round((bank.sums.nbytes + bank.counts.nbytes) / _MB, 3),
        cache_mb_per_image=round(statistics.median(caches), 3),
        image_size=tuple(round(statistics.median(sides)) for sides in zip(*sizes, strict=True)),
        num_classes=bank.num_classes,
        device=device_name(context.device),
        image_sizes=(min(sizes, key=math.prod), max(sizes, key=math.prod)),
        cache_mb_range=(min(caches), max(caches)),
    )
    return context.result(len(times['host']), cost=cost)


def _timing(seconds: list[float]) -> Timing:
    """Median and quartiles in milliseconds."""
    milliseconds = [1000 * value for value in seconds]
    low, _, high = statistics.quantiles(milliseconds, n=4) if len(milliseconds) > 1 else milliseconds * 3
    return Timing(*(round(value, 4) for value in (statistics.median(milliseconds), low, high)), len(milliseconds))
