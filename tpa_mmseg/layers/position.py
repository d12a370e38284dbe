"""Rules by which families of vision transformers resize their learned position table to another grid.

A model reproduces its paper only with the rule it was trained or published with; the kernels differ visibly.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Grid = tuple[int, int]

_KEPT_GRIDS = 8


def by_inflated_scale(table: Tensor, grid: Grid) -> Tensor:
    """DINO, and DINOv2 without registers: bicubic by a scale factor that counts a tenth of a patch too many."""
    native = table.shape[-2:]
    scale = tuple((side + 0.1) / n for side, n in zip(grid, native, strict=True))
    return F.interpolate(table, scale_factor=scale, mode='bicubic')


def by_size(table: Tensor, grid: Grid) -> Tensor:
    """MAE: bicubic to the size."""
    return F.interpolate(table, size=grid, mode='bicubic')


def by_size_antialiased(table: Tensor, grid: Grid) -> Tensor:
    """timm, and DINOv2 with registers: antialiased, which has another bicubic kernel even when it enlarges."""
    return F.interpolate(table, size=grid, mode='bicubic', antialias=True)


#: Name in a config -> function that resizes a (1, D, n, m) table to (1, D, h, w).
RULES: dict[str, Callable[[Tensor, Grid], Tensor]] = {
    'dino': by_inflated_scale,
    'size': by_size,
    'timm': by_size_antialiased,
}


def rule_of_family(name: str) -> str:
    """Returns the rule of a timm model's family. Args: name: e.g. ``vit_base_patch8_224.dino``."""
    architecture, _, tag = name.partition('.')
    if tag == 'dino':
        return 'dino'
    if tag == 'mae':
        return 'size'
    if 'dinov2' in architecture and '_reg' not in architecture:
        return 'dino'
    return 'timm'


class PositionTable:
    """A learned table at any grid. The tables of the last few grids are cached.

    Args:
        rule: Key of :data:`RULES`.
        native: Height and width of the grid that the table was trained on.
        prefix: Number of entries before the patches (class token, registers), which are never resized.
    """

    def __init__(self, rule: str, native: Grid, prefix: int) -> None:
        self.rule = rule
        self.native = tuple(native)
        self.prefix = prefix
        self._kept: OrderedDict[tuple, Tensor] = OrderedDict()

    def at(self, table: Tensor, grid: Grid) -> Tensor:
        """Resizes the table.

        Args:
            table: (1, prefix + n * m, D), the model's parameter.
            grid: Height h and width w.

        Returns:
            (1, prefix + h * w, D); at the native grid the table itself.
        """
        if grid == self.native:
            return table
        # The model may have been loaded, moved or cast since the last image.
        key = (grid, table.data_ptr(), table._version, table.device, table.dtype)
        if key not in self._kept:
            self._kept[key] = self._resize(table.detach(), grid)
        self._kept.move_to_end(key)
        if len(self._kept) > _KEPT_GRIDS:
            self._kept.popitem(last=False)
        return self._kept[key]

    def _resize(self, table: Tensor, grid: Grid) -> Tensor:
        prefix, patches = table[:, : self.prefix], table[:, self.prefix :]
        square = patches.float().unflatten(1, self.native).permute(0, 3, 1, 2)
        resized = RULES[self.rule](square, grid).flatten(2).transpose(1, 2)
        return torch.cat([prefix, resized.to(table.dtype)], dim=1)
