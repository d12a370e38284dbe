"""What a stage asks of a GPU: kernels that are started, and waits of the CPU, as PyTorch's profiler sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch.profiler import ProfilerActivity, profile

T = TypeVar('T')
# Names of the calls to the driver, without what follows for some versions (cudaLaunchKernelExC).
_LAUNCHES = ('cudaLaunchKernel', 'cuLaunchKernel', 'hipLaunchKernel', 'hipModuleLaunchKernel')
# Not cudaDeviceSynchronize: the profiler calls it when it stops. A copy that is waited for is followed by one of these.
_WAITS = ('cudaStreamSynchronize', 'cudaEventSynchronize', 'hipStreamSynchronize', 'hipEventSynchronize')


class LaunchCounter:
    """Runs stages under the profiler.

    Args:
        device: Where they run. On a CPU nothing is started or waited for, and the counts are None.

    Attributes:
        counts: Stage -> ``launches`` and ``synchronizations``.
    """

    def __init__(self, device: str) -> None:
        self.counts: dict[str, dict[str, int | None]] = {}
        self._on_gpu = device == 'cuda'

    def __call__(self, stage: str, run: Callable[[], T]) -> T:
        """Runs a stage, notes its counts, and returns its result."""
        if not self._on_gpu:
            self.counts[stage] = {'launches': None, 'synchronizations': None}
            return run()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            result = run()
        self.counts[stage] = count_calls({event.key: event.count for event in profiler.key_averages()})
        return result


def count_calls(calls: dict[str, int]) -> dict[str, int | None]:
    """Launches and waits among calls of the driver. Args: calls: name -> how often, as the profiler gives them."""
    return {
        kind: sum(count for name, count in calls.items() if name.startswith(names))
        for kind, names in (('launches', _LAUNCHES), ('synchronizations', _WAITS))
    }
