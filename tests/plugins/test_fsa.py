"""FSA gives the numbers of its original implementation inside ProxyCLIP, and is what its formulas say elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.helpers.golden import TOLERANCE, golden_files, load, plugin_clip
from tests.helpers.zoo import ZOO, clip_options, proxy
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import MaskCLIP, ProxyCLIP
from tpa_mmseg.plugins import FSA, fsa
from tpa_mmseg.plugins.fsa import divergence, most_similar

# In 'tokswap' the original confuses height and width of a window that is not square; 'fixed' is the same done right.
FILES = [path for path in golden_files('plugins', 'fsa_*.npz') if 'tokswap' not in path.stem]
HOSTS = ['ProxyCLIP', 'SCLIP', 'ClearCLIP', 'MaskCLIP', 'NACLIP']


def tokens(features: torch.Tensor) -> torch.Tensor:
    return features.flatten(2).transpose(1, 2)


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
@torch.no_grad()
def test_features_and_every_step_are_those_of_the_original(path: Path, plugin_weights: str) -> None:
    golden = load(path)
    plugin = FSA(*(float(golden[name]) for name in ('lamda', 'p', 'scale_patch', 'scale_uniform')))
    host = ProxyCLIP(
        {'model': plugin_clip(), 'pretrained': plugin_weights},
        proxy(16),
        text_features=golden['text'],
        beta=float(golden['beta']),
        gamma=float(golden['gamma']),
        plugin=plugin,
    )
    block = host.open_block(golden['image'], golden['ex_feats'])
    scores = plugin.isolated_scores(block, block.mix(block.values), host.cosines)
    torch.testing.assert_close(scores, golden['patch_scores'] - golden['uniform_scores'], **TOLERANCE)
    probabilities = scores[0].softmax(1)
    kl = divergence(probabilities, probabilities)
    torch.testing.assert_close(kl, golden['kl'][0], **TOLERANCE)
    assert torch.equal(most_similar(1 / (1 + kl), plugin.keep), golden['keep_mask'][0].bool())
    features = plugin.refine(block, host.cosines)
    torch.testing.assert_close(tokens(features), golden['fsa_feat'], **TOLERANCE)
    torch.testing.assert_close(host.cosines(features), golden['fsa_logits'], **TOLERANCE)


@pytest.mark.parametrize('name', HOSTS)
@torch.no_grad()
def test_attention_is_the_mean_of_the_three_products_in_every_host(name: str) -> None:
    host, windows = ZOO[name](plugin=FSA()), torch.randn(2, 3, 32, 56)
    block = host.open_block(windows)
    count, patches = block.values.shape[2], block.patches
    own = block.mix(torch.eye(count).expand(*block.values.shape[:2], -1, -1))
    scores = host.plugin.isolated_scores(block, block.mix(block.values), host.cosines)
    expected = []
    for window in range(2):
        feedback = torch.eye(count)
        probabilities = scores[window].softmax(1)
        feedback[patches, patches] = host.plugin.attention(probabilities, probabilities)
        expected.append((feedback @ own[window] + own[window] @ feedback + feedback) / 3)
    by_definition = block.finish(torch.stack(expected) @ block.values)
    torch.testing.assert_close(host.features(windows), by_definition, atol=1e-5, rtol=0)
    assert not torch.allclose(by_definition, block.features(), atol=1e-2)


@torch.no_grad()
def test_patches_that_keep_their_values_take_those_of_similar_patches_instead() -> None:
    host, windows = ZOO['MaskCLIP'](plugin=FSA()), torch.randn(1, 3, 32, 32)
    block = host.open_block(windows)
    scores = host.plugin.isolated_scores(block, block.values, host.cosines)[0].softmax(1)
    mixed = block.values.clone()
    mixed[:, :, block.patches] = host.plugin.attention(scores, scores) @ block.values[:, :, block.patches]
    torch.testing.assert_close(host.features(windows), block.finish(mixed), atol=1e-5, rtol=0)


def test_divergence_is_that_of_kullback_and_leibler() -> None:
    rows, others = torch.randn(5, 9).mul(3).softmax(1), torch.randn(7, 9).mul(3).softmax(1)
    expected = (rows[:, None] * (rows[:, None].log() - others.log())).sum(2)
    torch.testing.assert_close(divergence(rows, others), expected, atol=1e-5, rtol=0)
    assert (divergence(rows, rows) >= 0).all()


def test_most_similar_patches_are_kept_up_to_a_share() -> None:
    similarity = torch.tensor([[0.1, 1.0, 0.5], [0.2, 0.3, 1.0]])
    # Shares of the sorted rows: 0.50, 0.30, 0.20 and 0.50, 0.25, 0.22.
    assert most_similar(similarity, 0.0).tolist() == [[False, True, False], [False, False, True]]
    assert most_similar(similarity, 0.77).tolist() == [[False, True, False], [False, True, True]]
    assert most_similar(similarity, 0.9).tolist() == [[False, True, True], [False, True, True]]


@torch.no_grad()
def test_rows_in_chunks_are_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    host, windows = ZOO['SCLIP'](plugin=FSA()), torch.randn(1, 3, 32, 56)
    whole = host.features(windows)
    monkeypatch.setattr(fsa, '_CHUNK_ELEMENTS', 50)
    torch.testing.assert_close(host.features(windows), whole, atol=1e-5, rtol=0)


class LargestTensor(TorchDispatchMode):
    """Watches how many numbers the largest tensor has."""

    def __init__(self) -> None:
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        found = [each for each in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(each, torch.Tensor)]
        self.numel = max([self.numel, *(each.numel() for each in found)])
        return out


@torch.no_grad()
def test_nothing_has_the_size_of_all_pairs_times_queries() -> None:
    probabilities = torch.randn(60, 40).softmax(1)
    with LargestTensor() as largest:
        FSA().attention(probabilities, probabilities)
    assert largest.numel == 60 * 60


def test_fingerprint_knows_the_plugin_and_its_options() -> None:
    build = ZOO['ProxyCLIP with FSA']
    assert 'plugin' not in ZOO['ProxyCLIP']().fingerprint()
    prints = [build(plugin={'type': 'FSA', **options}).fingerprint()['plugin'] for options in ({}, {'keep': 0.3})]
    assert prints[0]['type'] == 'FSA' and prints[0] != prints[1]


@pytest.mark.parametrize(
    ('options', 'sentence'),
    [
        ({'plugin': {'type': 'FSA', 'keep': 45}}, 'FSA.keep must be between 0 and 1, not 45'),
        ({'plugin': {'type': 'SegDataPreProcessor'}}, 'a plug-in, e.g. FSA or ResCLIP, not SegDataPreProcessor'),
        ({'plugin': {'type': 'FSA'}, 'ks_thresh': 1.0}, 'cannot be combined with a plug-in'),
        ({'plugin': {'type': 'FSA'}, 'last_n_layers': 2}, 'set last_n_layers to 1'),
    ],
)
def test_what_does_not_fit_is_refused(options: dict, sentence: str) -> None:
    with pytest.raises(TPAError, match=sentence):
        MaskCLIP(**clip_options(), **options)
