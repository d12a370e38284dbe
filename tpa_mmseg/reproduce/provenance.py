"""Where results come from: the machine they were computed on."""

from __future__ import annotations

import platform
from contextlib import suppress
from pathlib import Path

import torch


def device_name(device: str) -> str:
    """Returns the name of a GPU, or of the CPU."""
    if device.startswith('cuda'):
        return torch.cuda.get_device_name()
    return cpu_name() if device == 'cpu' else f'{platform.machine()} {device}'


def cpu_name() -> str:
    """Returns the name of the processor."""
    with suppress(OSError, StopIteration):
        lines = Path('/proc/cpuinfo').read_text().splitlines()
        return next(line.split(':', 1)[1].strip() for line in lines if line.startswith('model name'))
    return platform.processor() or platform.machine()
