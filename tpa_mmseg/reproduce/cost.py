"""What TPA costs: time of each step with its spread, and what is kept in memory."""

from __future__ import annotations

import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable

import torch

from ..core import Lookup
from .experiments import COST_MEASURED, COST_WARM_UP
from .provenance import device_name
from .results import Cost, RunResult, Timing
from .session import Session

_MB = 1 << 20


def cost_run(session: Session) -> RunResult:
    """Times the steps of the first images of the test set, one image at a time."""
    total = min(COST_WARM_UP + COST_MEASURED, len(session.dataset))
    full, clip = session.shared.models['full'], session.shared.models['clip-features']
    bank = full.new_bank()
    times: dict[str, list[float]] = defaultdict(list)
    sizes: list[tuple[int, int]] = []
    caches: list[float] = []
    session.say(0, total)
    for number, data in enumerate(session.images(session.dataset, range(total))):
        steps, size, phi = _measure(session, data, full, clip, bank)
        if number >= COST_WARM_UP or total <= COST_WARM_UP:
            for name, seconds in steps.items():
                times[name].append(seconds)
            sizes.append(size)
            caches.append(round(phi.half().nbytes / _MB, 3))
        session.say(number + 1, total)
    cost = Cost(
        columns={name: _timing(values) for name, values in times.items()},
        bank_mb=round((bank.sums.nbytes + bank.counts.nbytes) / _MB, 3),
        cache_mb_per_image=round(statistics.median(caches), 3),
        image_size=tuple(round(statistics.median(sides)) for sides in zip(*sizes, strict=True)),
        num_classes=full.num_classes,
        device=device_name(session.device),
        image_sizes=(min(sizes, key=math.prod), max(sizes, key=math.prod)),
        cache_mb_range=(min(caches), max(caches)),
    )
    return session.result(len(times['host']), cost=cost)


@torch.no_grad()
def _measure(session: Session, data: dict, full, clip, bank) -> tuple[dict[str, float], tuple[int, int], torch.Tensor]:
    """Seconds of every step for one image, the size of the network's input, and the image's features."""
    clock = _Clock(session.device)
    prepared = full.data_preprocessor(data, False)
    image, sample = prepared['inputs'][0], prepared['data_samples'][0]
    clock('clip', lambda: clip.encode(image, sample))
    (scores,) = clock('host', lambda: full.host.score_maps(image[None], [sample]))
    phi = clock('encoder', lambda: full.encode(image, sample))
    # The pool's images go through the same encoder; measured on its own, as the paper does.
    clock('bank_encoder_pass', lambda: full.encode(image, sample))
    clock('bank_update', lambda: bank.update(scores, phi))
    clock('feature_transfer', lambda: phi.half().cpu().to(phi.device).float())
    prototypes = bank.prototypes()
    clock('lookup', lambda: _look_up(Lookup(prototypes, phi, scores.size), scores))
    clock.seconds['total'] = clock.seconds['host'] + clock.seconds['encoder']
    return clock.seconds, tuple(image.shape[-2:]), phi


def _look_up(lookup: Lookup, scores) -> None:
    """All cosines of an image, band by band."""
    for top, bottom in scores.ranges():
        lookup.band(top, bottom)


class _Clock:
    """Measures steps; a GPU is waited for. Args: device."""

    def __init__(self, device: str) -> None:
        self.seconds: dict[str, float] = {}
        self._wait = torch.cuda.synchronize if device.startswith('cuda') else lambda: None

    def __call__(self, name: str, step: Callable):
        self._wait()
        start = time.perf_counter()
        found = step()
        self._wait()
        self.seconds[name] = time.perf_counter() - start
        return found


def _timing(seconds: list[float]) -> Timing:
    """Median and quartiles in milliseconds."""
    milliseconds = [1000 * value for value in seconds]
    low, _, high = statistics.quantiles(milliseconds, n=4) if len(milliseconds) > 1 else milliseconds * 3
    return Timing(*(round(value, 4) for value in (statistics.median(milliseconds), low, high)), len(milliseconds))
