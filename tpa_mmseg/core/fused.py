"""Where the Triton kernels are used, and how they are called: see ``kernels.py`` for what they compute."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .decision import PeakMap
from .protocols import Added, Scores
from .row_mix import RowMix
from .tables import kept_per_shape, to_device
from .taps import host_taps

#: Environment variable: 0 switches the kernels off.
KERNELS = 'TPA_KERNELS'
# Pixels of a program: rows and columns.
_TILE = (4, 64)
_MOST_ELEMENTS = 2**31 - 1


@kept_per_shape(64)
def _anchor_taps(source: int, target: int, device: str) -> tuple[Tensor, Tensor]:
    taps = host_taps(source, target)
    weight = taps.weight.astype(np.float64)
    index = np.stack((taps.low, taps.high), 1).astype(np.int32)
    return to_device(index, device), to_device(np.stack((1 - weight, weight), 1), device)


@kept_per_shape(64)
def _starts(query_to_class: tuple[int, ...], device: str) -> Tensor:
    """(C + 1,) int32 first query of each class."""
    return to_device(np.concatenate(([0], np.cumsum(np.bincount(query_to_class)))).astype(np.int32), device)


@kept_per_shape(64)
def _rows_of_classes(classes: tuple[int, ...], num_classes: int, device: str) -> Tensor:
    """(C,) int32 row of each class among the covered ones, -1 for none."""
    rows = np.full(num_classes, -1, np.int32)
    rows[list(classes)] = np.arange(len(classes))
    return to_device(rows, device)


@lru_cache(maxsize=1)
def _kernels() -> Any:
    """The module of the kernels, None without Triton."""
    try:
        from . import kernels
    except ImportError:
        return None
    return kernels


@lru_cache(maxsize=16)
def _runs_on(device: str) -> bool:
    """Whether a kernel can be compiled for a GPU and run on it; if not, one warning says why."""
    if _kernels() is None:
        return False
    try:
        out = torch.zeros(1, device=device)
        with torch.cuda.device_of(out):
            _kernels().probe_kernel[(1,)](out)
        return bool(out.item() == 1)
    except Exception as error:  # a missing compiler, driver or GPU: each raises what it likes
        warnings.warn(
            f'The Triton kernels do not run on {device} ({error}). PyTorch alone gives the same labels, more slowly. '
            f'Set {KERNELS}=0 to hide this warning.',
            stacklevel=2,
        )
        return False


def usable(device: torch.device) -> bool:
    """Whether kernels run on a device: a GPU with Triton, or any device under Triton's interpreter."""
    if os.environ.get(KERNELS) == '0':
        return False
    if os.environ.get('TRITON_INTERPRET') == '1':
        return _kernels() is not None
    return device.type == 'cuda' and _runs_on(str(device))


def _launch(kernel: Any, size: tuple[int, int], *arguments: Any, **constants: Any) -> None:
    """Starts a program for each tile of an image of a size, on the GPU that the first argument is on."""
    rows, columns = _TILE
    # Triton would start it on the current GPU.
    with torch.cuda.device_of(arguments[0]):
        kernel[-(-size[0] // rows), -(-size[1] // columns)](*arguments, **constants, ROWS=rows, COLUMNS=columns)


def _query_mix(scores: Scores) -> tuple[RowMix, tuple[int, ...]] | None:
    """The rows of a host's text queries and the class of each query; None where a kernel does not fit."""
    classes = getattr(scores, 'query_to_class', None)
    if classes is None or scores.rule.threshold is not None or not usable(scores.device):
        return None
    if classes != tuple(sorted(classes)) or (scores.source.most_channels or scores.channels) < scores.channels:
        return None
    mix = scores.source.row_mix()
    # Kernels count elements in 32 bits.
    return (mix, classes) if mix is not None and mix.values.numel() <= _MOST_ELEMENTS else None


class FusedReader:
    """Reads the scores of an image by kernels: the best class of each pixel, of the host and of one setting of TPA.

    Args:
        host: The host's scores.
        mix: Their rows.
        query_to_class: The class of each text query, ascending.
        added: The setting; None for the host alone.
    """

    def __init__(self, host: Scores, mix: RowMix, query_to_class: tuple[int, ...], added: Added | None) -> None:
        self.host, self.mix, self.query_to_class, self.added = host, mix, query_to_class, added
        self.one_to_one = len(query_to_class) == host.num_classes
        self.cosines = mix
        if added is not None:
            lookup, device = added.lookup, str(host.device)
            self.cosines = lookup.cosines.row_mix()
            self.scale = lookup.scale(0, host.size[0], added.fusion.beta)
            self.covered = _rows_of_classes(lookup.prototypes.classes, host.num_classes, device)

    @classmethod
    def of(cls, host: Scores, added: Sequence[Added | None]) -> FusedReader | None:
        """A reader where kernels run and fit: text queries sorted by class, and at most one setting beside the host."""
        settings = [one for one in added if one is not None]
        if len(settings) > 1 or len(added) - len(settings) > 1:
            return None
        # A second lookup goes the eager way.
        if any(one.adds_nothing or one.second is not None for one in settings):
            return None
        queries = _query_mix(host)
        if queries is None:
            return None
        reader = cls(host, *queries, settings[0] if settings else None)
        return reader if reader.cosines.values.numel() <= _MOST_ELEMENTS else None

    def read(
        self,
        host: PeakMap | None,
        added: PeakMap | None,
        mass: Tensor | None = None,
        struck: tuple[Tensor | None, Tensor | None] = (None, None),
    ) -> None:
        """Fills the peaks of the host and of the setting, where they are wanted.

        Args:
            host, added: Peaks of the whole image, with the highest values.
            mass: (H, W), filled if it is wanted.
            struck: (C,) bool classes that the host and the setting may not choose.
        """
        scores, (height, width) = self.host, self.host.size
        nothing = self.scale if self.added is not None else self.mix.weight
        outputs = []
        for peaks in (host, added):
            parts = (None,) * 3 if peaks is None else (peaks.label, peaks.best, peaks.total)
            outputs += [nothing if part is None else part for part in parts]
        totals = mass is not None or any(peaks is not None and peaks.total is not None for peaks in (host, added))
        for slot, peaks in ((2, host), (5, added)):
            if totals and peaks is not None and peaks.total is None:
                outputs[slot] = torch.empty(scores.size, device=scores.device)  # its rule does not read it
        # Where one of the two strikes nothing out, its peaks are not wanted either.
        masks = [nothing if one is None else one.to(torch.int8) for one in struck]
        _launch(
            _kernels().decode_kernel,
            scores.size,
            self.mix.values,
            self.mix.index,
            self.mix.weight,
            _starts(self.query_to_class, str(scores.device)),
            self.cosines.values,
            self.cosines.index,
            self.cosines.weight,
            self.covered if self.added is not None else self.mix.index,
            nothing,
            *masks,
            *outputs,
            nothing if mass is None else mass,
            scores.num_classes,
            height,
            width,
            self.mix.values.shape[1],
            self.cosines.values.shape[1],
            K=self.mix.index.shape[1],
            L=self.cosines.index.shape[1],
            HOST=host is not None,
            ADDED=added is not None,
            TOTALS=totals,
            MASS=mass is not None,
            STRUCK=any(one is not None for one in struck),
        )


def fused_anchors(scores: Scores, grid: tuple[int, int], tau: float) -> tuple[Tensor, Tensor] | None:
    """(C, h, w) float64 weights and (C,) int64 counts of pixel anchors by one kernel; None where it does not fit.

    Args:
        scores: The host's scores.
        grid: Height and width of the patch grid.
        tau: What the probability of an anchor exceeds.
    """
    queries = _query_mix(scores)
    if queries is None:
        return None
    mix, query_to_class = queries
    (height, width), device = scores.size, scores.device
    weights = torch.zeros(scores.num_classes, *grid, dtype=torch.float64, device=device)
    counts = torch.zeros(scores.num_classes, dtype=torch.int32, device=device)
    _launch(
        _kernels().anchor_kernel,
        scores.size,
        mix.values,
        mix.index,
        mix.weight,
        _starts(query_to_class, str(device)),
        *_anchor_taps(grid[0], height, str(device)),
        *_anchor_taps(grid[1], width, str(device)),
        weights,
        counts,
        tau,
        scores.num_classes,
        height,
        width,
        mix.values.shape[1],
        *grid,
        K=mix.index.shape[1],
    )
    return weights, counts.long()
