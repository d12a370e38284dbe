"""The worlds there are."""

from __future__ import annotations

from .miniature_world import miniature_world
from .paper_world import PAPER
from .world import World

WORLDS: dict[str, World] = {world.name: world for world in (PAPER, miniature_world())}
