"""The linear layers of frozen networks, by whichever of PyTorch's two libraries is faster on the processor.

On a CPU ``F.linear`` computes float32 with MKL, which gains nothing from the AVX-512 instructions of AMD processors;
oneDNN, which PyTorch brings too, does. What it is worth is in docs/benchmark.md.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

# The second is the last layer of nn.MultiheadAttention.
_KINDS = (nn.Linear, NonDynamicallyQuantizableLinear)
_usual = False


class QuickLinear(nn.Linear):
    """An ``nn.Linear`` that runs as :func:`linear`; :func:`quicken` makes them."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def quicken(network: nn.Module) -> nn.Module:
    """Makes every linear layer of a frozen network a :class:`QuickLinear`, in place: weights and hooks stay."""
    for layer in network.modules():
        if type(layer) in _KINDS:
            layer.__class__ = QuickLinear
    return network


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``F.linear(x, weight, bias)``, by oneDNN where that is faster and no gradient is wanted."""
    if _onednn_is_faster() and _onednn_may(x, weight):
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, 'none', [], '')
    return F.linear(x, weight, bias)


@contextmanager
def usual_linear() -> Iterator[None]:
    """While it lasts, :func:`linear` is ``F.linear``: to compare the two."""
    global _usual
    before, _usual = _usual, True
    try:
        yield
    finally:
        _usual = before


@lru_cache(maxsize=1)
def _onednn_is_faster() -> bool:
    """Whether this is an AMD processor with AVX-512 (with AVX2 only the two are equal) and PyTorch is not too old."""
    try:
        processor = Path('/proc/cpuinfo').read_text()
    except OSError:
        processor = platform.processor()
    return (
        'AuthenticAMD' in processor
        and hasattr(torch, 'get_autocast_dtype')  # since 2.4, with what is asked below
        and torch.backends.cpu.get_cpu_capability() == 'AVX512'
        and hasattr(torch.ops.mkldnn, '_linear_pointwise')
    )


def _onednn_may(x: Tensor, weight: Tensor) -> bool:
    return (
        not _usual
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled('cpu')
        and x.device.type == 'cpu'
        and x.dtype == weight.dtype == torch.float32
        and x.is_contiguous()
        # A column slice of a larger matrix would take oneDNN a thousand times as long.
        and weight.is_contiguous()
        and torch.backends.mkldnn.enabled
    )
