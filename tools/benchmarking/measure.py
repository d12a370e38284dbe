"""Times two ways to compute the same thing, interleaved, and takes their peak memory, in processes of their own."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tpa_mmseg.engine.provenance import cpu_name

_MB = 1 << 20
_WAYS = ('ours', 'other')
Clock = Callable[[], float]
#: What time is told by: seconds that pass, or seconds of computing, to which other programs on the machine add less.
CLOCKS: dict[str, Clock] = {'wall': time.perf_counter, 'cpu': time.process_time}
# What the kernel counts in: kilobytes, except on macOS.
_MAXRSS_UNIT = 1 if sys.platform == 'darwin' else 1024


@dataclass(frozen=True)
class Case:
    """Something that can be computed in our way and in another.

    Functions are of modules, not closures, because they are measured in other processes.

    Args:
        name: Key of the case in the report.
        title: What is computed, for the table.
        against: What the other way is, for the table.
        setting: The size of the problem, for the table.
        inputs: Makes the inputs, the same ones every time.
        warm_inputs: Makes tiny inputs of the same kind.
        ours: Our way, from the inputs.
        other: The other way.
        times_faster: Target: the other's time is at least this many times ours.
        memory_ratio: Target: our peak memory is at most this share of the other's.
        memory_mb: Target: our peak memory is at most so many MB.
        stages: Times the stages of our way: from the inputs, a number of repetitions and a clock, name -> seconds.
    """

    name: str
    title: str
    against: str
    setting: str
    inputs: Callable[[], Any]
    warm_inputs: Callable[[], Any]
    ours: Callable[[Any], Any]
    other: Callable[[Any], Any]
    times_faster: float
    memory_ratio: float | None = None
    memory_mb: float | None = None
    stages: Callable[[Any, int, Clock], dict[str, float]] | None = None


def measure(case: Case, repeats: int, clock: str = 'wall') -> dict:
    """Measures a case. Returns its entry in the report: figures, ratios, targets and whether they are met.

    Args:
        case: What to measure.
        repeats: Timed repetitions.
        clock: A key of :data:`CLOCKS`.
    """
    times, stages = _in_a_fresh_process(_times, case, repeats, clock)
    ours, other = (statistics.median(times[way]) for way in _WAYS)
    our_peak, other_peak = (_in_a_fresh_process(_peak_memory, case, way) for way in _WAYS)
    entry = {
        'name': case.name,
        'title': case.title,
        'against': case.against,
        'setting': case.setting,
        'seconds': {'ours': ours, 'other': other},
        'repetitions': times,
        'stages': stages,
        'peak_mb': {'ours': our_peak, 'other': other_peak},
        'times_faster': other / ours,
        'memory_ratio': our_peak / other_peak,
        'targets': {'times_faster': case.times_faster, 'memory_ratio': case.memory_ratio, 'memory_mb': case.memory_mb},
    }
    met = {'times_faster': entry['times_faster'] >= case.times_faster}
    if case.memory_ratio is not None:
        met['memory_ratio'] = entry['memory_ratio'] <= case.memory_ratio
    if case.memory_mb is not None:
        met['memory_mb'] = our_peak <= case.memory_mb
    return {**entry, 'met': met}


def _times(
    case: Case, repeats: int, clock: str, threads: int
) -> tuple[dict[str, list[float]], dict[str, float] | None]:
    """Seconds of both ways, and those of the stages of ours."""
    torch.set_num_threads(threads)
    inputs = case.inputs()
    times = _interleaved_times(case, inputs, repeats, CLOCKS[clock])
    return times, case.stages(inputs, repeats, CLOCKS[clock]) if case.stages else None


def _interleaved_times(case: Case, inputs: Any, repeats: int, clock: Clock) -> dict[str, list[float]]:
    """The two ways take turns, so that whatever else the machine does slows both alike."""
    times: dict[str, list[float]] = {way: [] for way in _WAYS}
    for repeat in range(repeats + 1):
        for way, taken in times.items():
            start = clock()
            getattr(case, way)(inputs)
            if repeat > 0:  # the first turn warms up
                taken.append(clock() - start)
    return times


def _in_a_fresh_process(function: Callable, *args: Any) -> Any:
    # Forked from a server that has imported everything and computed nothing: what a case finds in memory, which makes
    # large tensors slow or fast, does not depend on the cases before it.
    context = multiprocessing.get_context('forkserver')
    context.set_forkserver_preload(['tpa_mmseg'])
    with context.Pool(1) as pool:
        return pool.apply(function, (*args, torch.get_num_threads()))


def _peak_memory(case: Case, way: str, threads: int) -> float:
    """Peak of the resident memory above what the process holds with the inputs made, in MB.

    A tiny problem comes first: kernels and thread pools are loaded then and do not count. The kernel keeps the peak
    itself (``ru_maxrss``), so nothing is missed between two samples; on Linux it is set back before the start.
    """
    torch.set_num_threads(threads)
    run = getattr(case, way)
    run(case.warm_inputs())
    inputs = case.inputs()
    gc.collect()
    with suppress(AttributeError):  # glibc keeps memory that was freed, which would hide as much of the peak
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path('/proc/self/clear_refs').write_text('5')
    before = _maxrss()
    run(inputs)
    # At least a page, so that ratios exist.
    return max(_maxrss() - before, 4096) / _MB


def _maxrss() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT


def machine() -> dict:
    """Where it is measured. ``load`` is how many programs ran in the last minute: ask before measuring."""
    return {
        'cpu': cpu_name(),
        'cores': multiprocessing.cpu_count(),
        'load': os.getloadavg()[0],
        'threads': torch.get_num_threads(),
        'torch': torch.__version__,
        'python': platform.python_version(),
    }
