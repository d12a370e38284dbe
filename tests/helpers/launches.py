"""Counts what a GPU would be given to do, without a GPU."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from tpa_mmseg.core.fused import KERNELS
from tpa_mmseg.core.tables import forget_tables

# Neither moves nor computes anything: they give tensors other shapes, or memory without content.
_FREE = {
    'empty',
    'empty_like',
    'new_empty',
    'empty_strided',
    'detach',
    'lift_fresh',
    '_unsafe_view',
    'new_empty_strided',
}


class Launches(TorchDispatchMode):
    """Counts the operations that are not views."""

    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        library, _, name = function._schema.name.partition('::')
        if library != 'prim' and not function.is_view and name not in _FREE:
            self.names[name] += 1
        return function(*args, **(kwargs or {}))

    @property
    def total(self) -> int:
        return self.names.total()


class NoWaits(TorchDispatchMode):
    """Raises where a copy between the CPU and a GPU would be waited for, which tensors without content allow."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = function._schema.name.partition('::')[2]
        if name in ('_to_copy', 'copy_'):
            given = dict(zip((argument.name for argument in function._schema.arguments), args, strict=False))
            given |= kwargs or {}
            source, target = given.get('src', given['self']).device.type, result.device.type
            assert source == target or (target == 'cuda' and given.get('non_blocking')), f'{source} to {target}: {name}'
        if name in ('index', 'index_put', 'index_put_') and args[0].device.type == 'cuda':
            assert all(index is None or index.device.type == 'cuda' for index in args[1]), 'an index from the CPU'
        return result


@contextmanager
def fake_gpu() -> Iterator[None]:
    """Tensors of the device ``cuda`` that have shapes and no content.

    Whatever would make the CPU wait for the GPU (a value, a choice, a size that depends on content) and whatever mixes
    devices raises an exception. A comparison is therefore a test that there is no such thing.
    """
    forget_tables()
    try:
        # A kernel cannot run on a tensor without content: what is counted is the path without kernels. And it has no
        # memory that could be pinned.
        with (
            patch.dict(os.environ, {KERNELS: '0'}),
            patch.object(torch.Tensor, 'pin_memory', lambda tensor: tensor),
            FakeTensorMode(allow_non_fake_inputs=True),
        ):
            yield
    finally:
        forget_tables()


def launches(run, repeat: int = 2) -> Counter[str]:
    """Operations of one run, after others of the same shapes that have filled the tables."""
    for _ in range(repeat - 1):
        run()
    with Launches() as mode:
        run()
    return mode.names
