"""What goes around a host: which hosts it takes, and what a stream means to the tools that run it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.hosts.test_contract import images
from tests.hosts.zoo import PREPROCESSOR, TINY_CLIP, ZOO, clip_options
from tests.world import make_world, results, run_in_process, run_ranks, write_config
from tpa_mmseg.demo.scenes import CLASSES
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import Host
from tpa_mmseg.plugins import LAME, MLMP, T3A, TENT

AROUND = [LAME, MLMP, T3A, TENT]


@pytest.mark.parametrize('kind', AROUND)
def test_hosts_without_windows_of_their_own_are_refused(kind: type[Host]) -> None:
    pytest.importorskip('segment_anything')
    with pytest.raises(TPAError, match=f'{kind.__name__} goes around a host .* and Trident does not'):
        kind(ZOO['Trident']())
    with pytest.raises(TPAError, match='and T3A does not'):
        kind(ZOO['T3A around NACLIP']())


@pytest.mark.parametrize('kind', [LAME, T3A])
def test_key_smoothing_is_refused_where_scores_are_replaced(kind: type[Host]) -> None:
    with pytest.raises(TPAError, match='set ks_thresh to 0'):
        kind(ZOO['MaskCLIP with refinements']())


@pytest.mark.parametrize('kind', AROUND)
@torch.no_grad()
def test_a_host_with_a_plugin_inside_is_a_host_like_any_other(kind: type[Host]) -> None:
    model = kind(ZOO['NACLIP with ResCLIP']())
    (plain,), (scores,) = model.host.score_maps(images((48, 64))), model.score_maps(images((48, 64)))
    assert torch.isfinite(scores.probabilities()).all()
    assert not torch.equal(plain.probabilities(), scores.probabilities())


@pytest.mark.parametrize('kind', AROUND)
def test_a_plugin_takes_the_hosts_classes_and_pixels(kind: type[Host]) -> None:
    host = {'type': 'SCLIP', 'clip': {'model': TINY_CLIP}, 'class_names': ['dog', ['cat', 'kitten']]}
    model = kind({**host, 'data_preprocessor': PREPROCESSOR, 'nonfinite': 'keep'})
    assert model.num_classes == 2 and model.nonfinite == 'keep'
    assert model.data_preprocessor is model.host.data_preprocessor
    assert list(model.own_names()) == ['dog', 'cat']


@pytest.mark.parametrize('kind', [T3A, TENT])
def test_a_stream_is_refused_on_several_ranks(kind: type[Host], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('tpa_mmseg.plugins.around.get_world_size', lambda: 2)
    host = {**clip_options(), 'type': 'SCLIP'}
    with pytest.raises(TPAError, match="run it on one rank, or set reset='image'"):
        kind(host, reset='stream').predict(images((48, 64)))
    kind(host).predict(images((48, 64)))


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A few scenes, and a config for a tiny host with T3A around it."""
    make_world(tmp_path, count=5, pool=3)
    features = tmp_path / 'text.npz'
    np.savez(features, text_features=np.random.default_rng(0).normal(size=(len(CLASSES), 16)))
    host = {'type': 'SCLIP', 'clip': {'model': TINY_CLIP}, 'text_features': str(features), 'slide_crop': 0}
    host['data_preprocessor'] = PREPROCESSOR
    return write_config(tmp_path, 3, model__host={'_delete_': True, 'type': 'T3A', 'host': host, 'reset': 'stream'})


def run(config: Path, work: Path, *args) -> dict:
    run_in_process('test', config, '--work-dir', work, *args)
    return results(work)


def test_a_stream_starts_with_the_test_whether_the_bank_was_built_or_found(world: Path, tmp_path: Path) -> None:
    built = run(world, tmp_path / 'work')
    found = run(world, tmp_path / 'work')
    alone = run(world, tmp_path / 'alone', '--no-tpa')
    assert built['host'] == found['host'] == alone['host']
    assert built['tpa'] == found['tpa']


def test_ranks_that_would_divide_a_stream_end_with_the_sentence(world: Path, tmp_path: Path) -> None:
    done = run_ranks(2, 'test', world, '--work-dir', tmp_path / 'work')
    assert done.returncode != 0
    assert "T3A with reset='stream' learns from all images in their order" in done.stderr
