"""What TPA costs: time of each step with its spread, and what is kept in memory."""

from __future__ import annotations

import math

import numpy as np

from ..core import PrototypeBank
from ..engine.provenance import device_name
from ..engine.timing import StageTimer, run_stages
from .context import RunContext
from .experiments import EXPERIMENTS
from .results import Cost, RunResult, Timing

_MB = 1 << 20
# Images that warm up before others are measured.
_WARM_UP = 3


def cost_run(context: RunContext) -> RunResult:
    """Times the steps of the first images of the test set, one image at a time."""
    total = min(_WARM_UP + EXPERIMENTS['cost'].most, len(context.dataset))
    bank = context.model.new_bank()
    measured = []
    context.say(0, total)
    for number, data in enumerate(context.images(context.dataset, range(total)), start=1):
        measured.append(_measure(context, data, bank))
        context.say(number, total)
    times, sizes, caches = zip(*(measured[_WARM_UP:] or measured), strict=True)
    file = context.folder.banks / 'cost.safetensors'
    bank.save(file)
    cost = Cost(
        columns={name: _timing([seconds[name] for seconds in times]) for name in times[0]},
        bank_mb=round(file.stat().st_size / _MB, 3),
        cache_mb_per_image=round(float(np.median(caches)), 3),
        image_size=tuple(np.median(sizes, axis=0).round().astype(int).tolist()),
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


def _timing(seconds: list[float]) -> Timing:
    """Median and quartiles in milliseconds."""
    return Timing(*np.quantile(1000 * np.array(seconds), (0.5, 0.25, 0.75)).round(4).tolist(), len(seconds))
