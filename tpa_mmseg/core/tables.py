"""Tables of indices and weights that depend on shapes alone: made once on the CPU and kept on the device."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

_P = ParamSpec('_P')
_T = TypeVar('_T')

_caches: list = []


def kept_per_shape(maxsize: int) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Decorator of functions from sizes and a device's name to tensors: keeps the last ``maxsize`` results.

    The second image of a shape then needs no copy to a GPU.
    """

    def decorate(make: Callable[_P, _T]) -> Callable[_P, _T]:
        cached = lru_cache(maxsize=maxsize)(make)
        _caches.append(cached)
        return cast(Callable[_P, _T], cached)

    return decorate


def kept_per_band(make: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorator of functions whose last argument is a device's name: keeps the tables of bands on a GPU only.

    On a CPU they are cheap. And a small table that stays, in the place that a band has left, would keep the next band
    from that place: memory would grow by every band.
    """
    kept = kept_per_shape(1024)(make)

    @wraps(make)
    def choose(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return (make if args[-1] == 'cpu' else kept)(*args, **kwargs)

    return choose


def to_device(values: np.ndarray | Tensor, device: str) -> Tensor:
    """Values on a device, by a copy that nobody waits for. An array is copied also to the CPU."""
    tensor = values if isinstance(values, Tensor) else torch.from_numpy(np.array(values, order='C'))
    # A copy from memory that is not pinned may wait for the GPU.
    return (tensor.pin_memory() if device.startswith('cuda') else tensor).to(device, non_blocking=True)


def forget_tables() -> None:
    """Frees the tables of all devices."""
    for cached in _caches:
        cached.cache_clear()
