"""Examples that are one click away: scenes of the miniature world and words for them."""

from __future__ import annotations

from dataclasses import dataclass

from ..apis.picture import Picture
from ..miniature.splits import split_of
from ..miniature.textures import GROUNDS, THINGS
from ..miniature.words import WORDS

# Scenes that no network was trained on, and that are not kept for the last look.
_SPLIT = 'val'


@dataclass(frozen=True)
class Example:
    """Pictures and words.

    Args:
        name: What to call it.
        scenes: Which scenes.
        classes: One per line.
        background: Whether there is one.
    """

    name: str
    scenes: range
    classes: str
    background: bool = False

    def pictures(self) -> list[Picture]:
        """Paints the scenes."""
        split = split_of(_SPLIT)
        return [Picture(f'scene {index}', split.scene(index).image) for index in self.scenes]


EXAMPLES = (
    Example('Painted scenes', range(8), '\n'.join(GROUNDS + THINGS)),
    Example('Things before a background', range(8, 16), '\n'.join(THINGS), background=True),
    Example('In other words', range(16, 24), '\n'.join('; '.join(words[1:]) for words in WORDS.values())),
)
