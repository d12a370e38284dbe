"""Which scenes are for training, for choices, and for the last look.

In training scenes one surface in ten has unusual colors, in the others four in ten: what a network has seldom seen is
what TPA is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import TPAError
from .world import Scene, paint


@dataclass(frozen=True)
class Split:
    """A row of scenes.

    Attributes:
        first: The seed of its first scene; the others follow.
        most: How many scenes it may have without reaching the next split.
        unusual: Probability of unusual colors.
    """

    first: int
    most: int
    unusual: float

    def seed(self, index: int) -> int:
        return self.first + index

    def scene(self, index: int) -> Scene:
        return paint(self.seed(index), self.unusual)


SPLITS = {
    'train': Split(0, 1_000_000, 0.1),
    'val': Split(1_000_000, 1_000_000, 0.4),
    'test': Split(2_000_000, 1_000_000, 0.4),
}


def split_of(name: str) -> Split:
    """The split of a name."""
    if name not in SPLITS:
        raise TPAError(f'The miniature world has the splits {", ".join(SPLITS)}, not {name!r}.')
    return SPLITS[name]


def paint_equal(name: str, indices: Sequence[int], size: tuple[int, int] = (128, 160)) -> list[Scene]:
    """Scenes of one common size, so that they fit into one array: what trainings use."""
    split = split_of(name)
    return [paint(split.seed(index), split.unusual, size) for index in indices]
