"""A suite of a few painted scenes and the demo's segmentor, for tests of everything around a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.world import make_world
from tpa_mmseg.catalog import Encoder, Row
from tpa_mmseg.reproduce.suite import SUITES, Suite

ROW = Row('fcn', '', 'r18')
#: An encoder beside the demo's own; random: a test that compares scores sets a seed.
OTHER = {
    'type': 'TimmEncoder',
    'model': {'img_size': 64, 'patch_size': 8, 'embed_dim': 32, 'depth': 1, 'num_heads': 2},
    'pretrained': False,
}


def demo_suite(folder: Path, count: int = 7, pool: int = 4) -> Suite:
    """Writes scenes and a config, and describes them as a suite with one host and two names of one benchmark."""
    config = make_world(folder, count, pool)
    return Suite(
        name='demo',
        title='Demo',
        hosts={'fcn': 'FCN'},
        backbones={'r18': 'ResNet-18'},
        benchmarks={'dusk': 'Dusk', 'dawn': 'Dawn'},
        images={'dusk': count, 'dawn': count},
        rows=(ROW,),
        ablation=ROW,
        ablation_benchmarks=('dusk',),
        growth=ROW,
        config=lambda run: config,
        extractors={'other': Encoder('other', 'Other', OTHER)},
    )


def use(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Makes a suite known for the time of a test."""
    monkeypatch.setitem(SUITES, suite.name, suite)
    return suite
