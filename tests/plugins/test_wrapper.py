"""Wrappers of hosts: which hosts they take, their entropy, and what a stream means to the tools that run it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers.world import make_world, results, run_in_process, run_ranks, write_config
from tests.helpers.zoo import PREPROCESSOR, TINY_CLIP, ZOO, clip_options, images
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import Host
from tpa_mmseg.miniature.world import CLASSES
from tpa_mmseg.plugins import LAME, MLMP, T3A, TENT
from tpa_mmseg.plugins.wrapper import entropy

AROUND = [LAME, MLMP, T3A, TENT]


@pytest.mark.parametrize('kind', AROUND)
def test_hosts_without_windows_of_their_own_are_refused(kind: type[Host]) -> None:
    pytest.importorskip('segment_anything')
    with pytest.raises(TPAError, match=f'{kind.__name__} cannot wrap Trident, which does not compare single windows'):
        kind(ZOO['Trident']())
    with pytest.raises(TPAError, match='cannot wrap T3A'):
        kind(ZOO['T3A around NACLIP']())


def test_entropy_has_the_digits_of_the_reference() -> None:
    logits = 50 * torch.randn(200, 21, generator=torch.Generator().manual_seed(0))
    reference = -(logits.softmax(1) * logits.log_softmax(1)).sum(1)
    assert torch.equal(entropy(logits, dim=1), reference)
    exact = logits.double()
    torch.testing.assert_close(reference.double(), entropy(exact, dim=1), atol=1e-6, rtol=1e-5)
    assert not torch.equal(reference, -(logits.log_softmax(1).exp() * logits.log_softmax(1)).sum(1))


def test_images_are_independent_unless_others_are_learned_from() -> None:
    host = {**clip_options(), 'type': 'SCLIP'}
    assert TENT(host).images_are_independent and LAME(host, scope='window').images_are_independent
    assert not TENT(host, scope='batch').images_are_independent
    assert not T3A(host, scope='stream').images_are_independent


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
    monkeypatch.setattr('tpa_mmseg.plugins.wrapper.get_world_size', lambda: 2)
    host = {**clip_options(), 'type': 'SCLIP'}
    with pytest.raises(TPAError, match="run it on one rank, or set scope='image'"):
        kind(host, scope='stream').predict(images((48, 64)))
    kind(host).predict(images((48, 64)))


@pytest.fixture
def sclip(tmp_path: Path) -> dict:
    """A tiny random host for the scenes."""
    features = tmp_path / 'text.npz'
    np.savez(features, text_features=np.random.default_rng(0).normal(size=(len(CLASSES), 16)))
    host = {'type': 'SCLIP', 'clip': {'model': TINY_CLIP}, 'text_features': str(features), 'slide_crop': 0}
    return {**host, 'data_preprocessor': PREPROCESSOR}


@pytest.fixture
def stream(sclip: dict, tmp_path: Path) -> Path:
    """A few scenes, and a config with T3A on a stream of them."""
    make_world(tmp_path, count=5)
    return write_config(tmp_path, 3, model__host={'_delete_': True, 'type': 'T3A', 'host': sclip, 'scope': 'stream'})


def run(config: Path, work: Path, *args) -> dict:
    run_in_process('test', config, '--work-dir', work, *args)
    return results(work)


def test_a_stream_starts_with_the_test_whether_the_bank_was_built_or_found(stream: Path, tmp_path: Path) -> None:
    built = run(stream, tmp_path / 'work')
    found = run(stream, tmp_path / 'work')
    run_in_process('test', stream, '--work-dir', tmp_path / 'alone', '--no-tpa')
    assert built['host'] == found['host'] == results(tmp_path / 'alone' / 'no-tpa')['host']
    assert built['tpa'] == found['tpa']


def test_ranks_that_would_divide_a_stream_end_with_the_sentence(stream: Path, tmp_path: Path) -> None:
    done = run_ranks(2, 'test', stream, '--work-dir', tmp_path / 'work')
    assert done.returncode != 0
    assert "T3A with scope='stream' learns from all images in their order" in done.stderr


def test_images_that_adapt_together_are_the_same_on_two_ranks(sclip: dict, tmp_path: Path) -> None:
    make_world(tmp_path, count=5)
    config = write_config(
        tmp_path,
        3,
        model__host={'_delete_': True, 'type': 'MLMP', 'host': sclip, 'steps': 2, 'lr': 0.05, 'scope': 'batch'},
        test_dataloader__batch_size=2,
        test_dataloader__sampler={'_delete_': True, 'type': 'WholeBatchSampler', 'batch_size': 2},
    )
    alone = run(config, tmp_path / 'one')
    done = run_ranks(2, 'test', config, '--work-dir', tmp_path / 'two')
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / 'two')['per_class'] == alone['per_class']
    # Pairs matter: each image on its own gives other labels.
    single = run(config, tmp_path / 'single', '--cfg-options', 'model.host.scope=image')
    assert single['per_class'] != alone['per_class']
