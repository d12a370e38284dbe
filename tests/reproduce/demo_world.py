"""A world of a few painted scenes and the demo's segmentor, for tests of everything around a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.world import make_world
from tpa_mmseg.reproduce.world import World
from tpa_mmseg.reproduce.worlds import WORLDS

#: An encoder beside the demo's own; random, so whoever compares numbers sets a seed.
OTHER = {
    'type': 'TimmEncoder',
    'model': {'img_size': 64, 'patch_size': 8, 'embed_dim': 32, 'depth': 1, 'num_heads': 2},
    'pretrained': False,
}


def demo_world(folder: Path, count: int = 7, pool: int = 4) -> World:
    """Writes scenes and a config, and describes them as a world with one host and two names of one benchmark."""
    config = make_world(folder, count, pool)
    return World(
        name='demo',
        hosts={'fcn': 'FCN'},
        backbones={'r18': 'ResNet-18'},
        benchmarks={'dusk': 'Dusk', 'dawn': 'Dawn'},
        images={'dusk': count, 'dawn': count},
        rows=(('fcn', 'r18'),),
        proxies={},
        proxy_backbones=(),
        encoders={'other': OTHER},
        encoder_names={'other': 'Other'},
        ablation_host=('fcn', 'r18'),
        ablation_benchmarks=('dusk',),
        growth_host=('fcn', 'r18'),
        compositions=(),
        cost_rows=(),
        config=lambda run: config,
    )


def use(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Makes a world known for the time of a test."""
    monkeypatch.setitem(WORLDS, world.name, world)
    return world
