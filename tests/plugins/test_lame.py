"""LAME gives the numbers of its original implementation, on the patches of an image or a window."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.helpers.golden import TOLERANCE, golden_file, load
from tests.helpers.zoo import clip_options, images
from tpa_mmseg.errors import TPAError
from tpa_mmseg.plugins import LAME, lame
from tpa_mmseg.plugins.lame import AFFINITIES, adjust, squared_distances


def affinity_of(kind: str, features: torch.Tensor, neighbors: int) -> torch.Tensor:
    return AFFINITIES[kind](features, neighbors, torch.ones(len(features), dtype=torch.bool))


CASES = {'knn5': ('knn', 5), 'knn1': ('knn', 1), 'rbf5': ('rbf', 5), 'linear': ('linear', 5)}


@pytest.mark.parametrize('case', CASES)
def test_affinities_and_assignments_are_those_of_the_original(case: str) -> None:
    golden = load(golden_file('plugins', 'lame.npz'))
    kind, neighbors = CASES[case]
    affinity = affinity_of(kind, F.normalize(golden['feats'], dim=1), neighbors)
    torch.testing.assert_close(affinity, golden[f'{case}_kernel'], **TOLERANCE)
    torch.testing.assert_close(adjust(golden['probs'], affinity).softmax(1), golden[f'{case}_Y'], **TOLERANCE)
    symmetric = (affinity + affinity.T) / 2
    torch.testing.assert_close(adjust(golden['probs'], symmetric).softmax(1), golden[f'{case}_sym_Y'], **TOLERANCE)


def test_distances_of_features_that_nearly_agree_keep_their_digits() -> None:
    base = F.normalize(torch.randn(1, 64), dim=1)
    features = F.normalize(base + 1e-3 * torch.randn(30, 64), dim=1)
    exact = torch.cdist(features.double(), features.double()).square()
    found = squared_distances(features, torch.ones(30, dtype=torch.bool))
    torch.testing.assert_close(found.double(), exact, rtol=1e-3, atol=1e-10)


def test_without_affinity_the_classifier_has_its_way() -> None:
    probabilities = torch.randn(6, 4).softmax(1)
    torch.testing.assert_close(adjust(probabilities, torch.zeros(6, 6)).softmax(1), probabilities)


@pytest.mark.parametrize('together', [2, 7, 10, 100])
def test_iterations_that_are_tested_together_end_where_single_ones_do(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU: all iterations are computed, and nothing changes after the one that settled."""
    golden = load(golden_file('plugins', 'lame.npz'))
    for case in ('rbf5', 'knn5'):
        expected = adjust(golden['probs'], golden[f'{case}_kernel'])
        with monkeypatch.context() as patch:
            patch.setitem(lame._TESTED_TOGETHER, 'cpu', together)
            assert torch.equal(adjust(golden['probs'], golden[f'{case}_kernel']), expected)
        assert not torch.equal(adjust(expected.softmax(1), golden[f'{case}_kernel']), expected)


@pytest.mark.parametrize('kind', AFFINITIES)
@pytest.mark.parametrize('count', [3, 20])
def test_patches_that_are_not_known_are_nobodys_neighbors(kind: str, count: int) -> None:
    features = F.normalize(torch.randn(count + 4, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    known = torch.arange(len(features)) % 3 != 1 if count == 20 else torch.arange(len(features)) < count
    found = AFFINITIES[kind](features.masked_fill(~known[:, None], 0), 5, known)
    torch.testing.assert_close(found[known][:, known], affinity_of(kind, features[known], 5), **TOLERANCE)
    assert not found[known][:, ~known].any() and not found[~known][:, known].any()


def test_equal_features_agree() -> None:
    features = F.normalize(torch.ones(5, 8), dim=1)
    probabilities = torch.tensor([[0.9, 0.1]] * 4 + [[0.4, 0.6]])
    for kind in AFFINITIES:
        labels = adjust(probabilities, affinity_of(kind, features, 3)).argmax(1)
        assert (labels == 0).all(), kind


def tiny(**options) -> LAME:
    torch.manual_seed(7)
    host = {**clip_options(), 'type': 'NACLIP', 'slide_crop': 32, 'slide_stride': 32, 'pamr_steps': 0}
    return LAME({**host, **options.pop('host', {})}, **options)


@torch.no_grad()
def test_patches_of_an_image_agree_or_those_of_a_window() -> None:
    (image,) = images((32, 64))
    left = tiny().score_maps([image[:, :, :32]])[0].probabilities()
    by_window = tiny(scope='window').score_maps([image])[0].probabilities()
    by_image = tiny().score_maps([image])[0].probabilities()
    torch.testing.assert_close(by_window[:, :, :32], left, **TOLERANCE)
    assert (by_image[:, :, :32] - left).abs().max() > 1e-3


@torch.no_grad()
def test_scores_of_patches_are_the_logarithms_of_assignments() -> None:
    model, (image,) = tiny(affinity='knn'), images((32, 32))
    features = F.normalize(model.host.features(image[None]), dim=1)[0].flatten(1).T
    probabilities = (model.host.logit_scale * features @ model.host.text_features.T).softmax(1)
    expected = adjust(probabilities, affinity_of('knn', features, 5)).softmax(1)
    ((scores,),) = model.score_windows([[image]])
    found = (model.host.logit_scale * scores).softmax(0).flatten(1).T
    torch.testing.assert_close(found, expected, **TOLERANCE)


def test_there_is_no_stream_and_a_sentence_says_so() -> None:
    with pytest.raises(TPAError, match="LAME.scope must be one of image, window, not 'stream'"):
        tiny(scope='stream')
    with pytest.raises(TPAError, match='affinity must be one of rbf, knn, linear'):
        tiny(affinity='cosine')


@torch.no_grad()
def test_nan_stays_where_it_is() -> None:
    (image,) = images((32, 64))
    whole = tiny().score_maps([image[:, :, :32]])[0].probabilities()
    image[:, :, 60:] = float('nan')
    broken = tiny(host={'nonfinite': 'keep'}).score_maps([image])[0].probabilities()
    torch.testing.assert_close(broken[:, :, :32], whole, **TOLERANCE)
    assert broken[:, :, 32:].isnan().all()
