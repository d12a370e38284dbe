"""ResCLIP gives the numbers of its original implementation inside every host, and its switches do what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.helpers.golden import TOLERANCE, golden_files, load, plugin_clip
from tests.helpers.zoo import RESCLIP, ZOO, clip_options, proxy
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import CLIP, NACLIP, SCLIP, ClearCLIP, LastBlockHost, MaskCLIP, ProxyCLIP
from tpa_mmseg.hosts.attention import gaussian_prior
from tpa_mmseg.plugins.resclip import cross_correlation
from tpa_mmseg.plugins.resclip_feedback import connected, gaussian_kernel, patch_labels, semantic_attention

FILES = golden_files('plugins', 'resclip_*.npz')
HOSTS = {'resclip': NACLIP, 'clearclip': ClearCLIP, 'sclip': SCLIP, 'vanilla': CLIP}
PARTS = ['host', 'rcs', 'sfr', 'both', 'both_nodel']
CASES = [
    pytest.param(path, name, part, id=f'{path.stem}-{name}-{part}')
    for path in FILES
    for name in HOSTS
    for part in PARTS
    if f'{name}_{part}_feat' in load(path)
]

Golden = dict[str, torch.Tensor]


def build(golden: Golden, weights: str, name: str, part: str) -> LastBlockHost:
    """The host of a case. Args: part: which of RCS and SFR it has."""
    (rcs_scale, rcs_weight), (sfr_scale, sfr_weight) = golden['rcs_weights'].tolist(), golden['sfr_weights'].tolist()
    sfr = {
        'scale': sfr_scale,
        'weight': sfr_weight,
        'temp_thd': float(golden['temp_thd']),
        'connectivity': None if part == 'both_nodel' else 'partial',
        'gaussian_std': float(golden['gaussian_std']),
    }
    plugin = {
        'type': 'ResCLIP',
        'rcs': {'scale': rcs_scale, 'weight': rcs_weight} if part not in ('host', 'sfr') else False,
        'sfr': sfr if part not in ('host', 'rcs') else False,
    }
    return HOSTS[name](
        {'model': plugin_clip(), 'pretrained': weights},
        text_features=golden['text'],
        gaussian_std=float(golden['gaussian_std']),
        logit_scale=float(golden['logit_scale']),
        plugin=plugin,
    )


@pytest.mark.parametrize(('path', 'name', 'part'), CASES)
@torch.no_grad()
def test_features_and_logits_are_those_of_the_original(path: Path, name: str, part: str, plugin_weights: str) -> None:
    golden = load(path)
    host = build(golden, plugin_weights, name, part)
    features = host.features(golden['image'])
    torch.testing.assert_close(features.flatten(2).transpose(1, 2), golden[f'{name}_{part}_feat'], **TOLERANCE)
    torch.testing.assert_close(host.cosines(features), golden[f'{name}_{part}_logits'], **TOLERANCE)


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
@torch.no_grad()
def test_every_step_is_that_of_the_original(path: Path, plugin_weights: str) -> None:
    golden = load(path)
    image, sfr = golden['image'], build(golden, plugin_weights, 'resclip', 'both').plugin.sfr
    first = build(golden, plugin_weights, 'resclip', 'rcs')
    probabilities = sfr.probabilities(first.cosines(first.features(image))[0], image[0], first.logit_scale)
    if 'resclip_both_pass1_prob' in golden:
        torch.testing.assert_close(probabilities, golden['resclip_both_pass1_prob'], **TOLERANCE)
    labels = patch_labels(probabilities, sfr.temp_thd, first.tower.patch_size)
    assert torch.equal(labels, golden['resclip_both_labels'].long())
    for part, connectivity in (('both', 'partial'), ('both_nodel', None)):
        expected = golden[f'resclip_{part}_attn_sfr']
        found = semantic_attention(labels, connectivity, sfr.gaussian_std)
        torch.testing.assert_close(found, expected[1:, 1:], **TOLERANCE)
        assert not expected[0].any() and not expected[:, 0].any()
    if 'rcs_map' in golden:
        _, earlier = first.plugin._trunk(first.tower, image)
        eye = torch.eye(len(labels.flatten()) + 1)[None, None].expand(1, 4, -1, -1)
        torch.testing.assert_close(cross_correlation(earlier, eye)[0], golden['rcs_map'], **TOLERANCE)
    if 'omega' in golden:
        torch.testing.assert_close(gaussian_prior(tuple(labels.shape), sfr.gaussian_std), golden['omega'], **TOLERANCE)


@torch.no_grad()
def test_either_half_can_be_left_out() -> None:
    windows, found = torch.randn(2, 3, 32, 56), {}
    for rcs in (RESCLIP['rcs'], False):
        for sfr in (RESCLIP['sfr'], False):
            host = ZOO['SCLIP'](plugin={'type': 'ResCLIP', 'rcs': rcs, 'sfr': sfr})
            found[bool(rcs), bool(sfr)] = host.features(windows)
    torch.testing.assert_close(found[False, False], ZOO['SCLIP']().features(windows), atol=1e-6, rtol=0)
    for one, other in ((True, False), (False, True), (True, True)):
        assert not torch.allclose(found[one, other], found[False, False], atol=1e-3)
    assert not torch.allclose(found[True, True], found[True, False], atol=1e-3)


def on_the_way(start: tuple[int, int], stop: tuple[int, int], steps: int, k: int) -> tuple[int, int]:
    """The k-th patch on the way, without rounding before the last step. Python rounds half to even."""
    return tuple(round(a + (b - a) * k / steps) for a, b in zip(start, stop, strict=True))


def by_float32_paths(labels: torch.Tensor) -> torch.Tensor:
    """Partial connectivity as the original computes it: all points of all pairs at once, in float32."""
    height, width = labels.shape
    patches = torch.cartesian_prod(torch.arange(height), torch.arange(width)).float()
    start, stop = patches[:, None, None], patches[None, :, None]
    longest = max(height, width) - 1
    t = torch.linspace(0, 1, longest + 1)[:, None]
    points = (start * (1 - t) + stop * t).round().long()
    beyond = torch.arange(longest + 1) > (stop - start).abs().amax(-1)
    same = labels[points[..., 0], points[..., 1]] == labels.flatten()[:, None, None]
    return (same | beyond).all(-1) & (labels.flatten()[:, None] == labels.flatten())


@pytest.mark.parametrize('grid', [(15, 15), (21, 27), (11, 14), (4, 7)])
def test_partial_paths_are_rounded_as_in_the_original(grid: tuple[int, int]) -> None:
    labels = torch.randint(0, 2, grid, generator=torch.Generator().manual_seed(3))
    assert torch.equal(connected(labels, 'partial'), by_float32_paths(labels))


def test_float32_decides_about_points_half_way_between_two_patches() -> None:
    """From patch 0 to patch 7 of 15 the seventh point is 3.5, in float32 a little less: patch 4 is not on the way."""
    labels = torch.zeros(1, 15, dtype=torch.int64)
    labels[0, 4] = 1
    assert on_the_way((0,), (7,), 14, 7) == (4,)
    assert connected(labels, 'partial')[0, 7]
    labels[0, [3, 4]] = torch.tensor([1, 0])
    assert not connected(labels, 'partial')[0, 7]


@pytest.mark.parametrize('connectivity', ['partial', 'full'])
@pytest.mark.parametrize('grid', [(5, 5), (4, 7), (1, 9), (6, 3), (1, 2)])
def test_connectivity_equals_its_definition_in_one_map_and_in_several(grid: tuple[int, int], connectivity: str) -> None:
    labels = torch.randint(0, 2, grid, generator=torch.Generator().manual_seed(1))
    patches = [(row, column) for row in range(grid[0]) for column in range(grid[1])]
    expected = torch.zeros(len(patches), len(patches), dtype=torch.bool)
    for i, start in enumerate(patches):
        for j, stop in enumerate(patches):
            distance = max(abs(a - b) for a, b in zip(start, stop, strict=True))
            steps = max(grid) - 1 if connectivity == 'partial' else distance or 1
            way = [on_the_way(start, stop, steps, k) for k in range(distance + 1)]
            expected[i, j] = labels[stop] == labels[start] and all(labels[here] == labels[start] for here in way)
    assert torch.equal(connected(labels, connectivity), expected)
    several = connected(torch.stack((torch.zeros_like(labels), labels)), connectivity)
    assert several[0].all() and torch.equal(several[1], expected)


def test_only_the_full_path_sees_what_is_between_near_patches() -> None:
    labels = torch.zeros(1, 13, dtype=torch.int64)
    labels[0, 1] = 1
    assert connected(labels, 'partial')[0, 2] and not connected(labels, 'full')[0, 2]
    assert not connected(labels, 'partial')[0, 12]
    assert not torch.allclose(semantic_attention(labels, 'partial', 5.0), semantic_attention(labels, 'full', 5.0))


def test_label_of_a_patch_is_the_most_frequent_one_of_sure_pixels() -> None:
    probabilities = torch.randn(4, 13, 18, generator=torch.Generator().manual_seed(2)).mul(3).softmax(0)
    best, labels = probabilities.max(0)
    labels = labels.masked_fill(best < 0.6, 0)[:12, :16].unfold(0, 4, 4).unfold(1, 4, 4).flatten(2)
    found = patch_labels(probabilities, 0.6, 4)
    assert found.shape == (3, 4)
    for row in range(3):
        for column in range(4):
            counts = [(labels[row, column] == query).sum().item() for query in range(4)]
            assert found[row, column] == counts.index(max(counts))


def test_rows_of_the_feedback_sum_to_one_and_the_kernel_is_odd() -> None:
    for grid in ((1, 1), (3, 4), (6, 7)):
        rows = semantic_attention(torch.randint(0, 3, grid), 'partial', 5.0).sum(1)
        torch.testing.assert_close(rows, torch.ones_like(rows))
    assert [len(gaussian_kernel(count, 5.0)) for count in (1, 9, 16, 31, 400)] == [1, 9, 17, 31, 31]
    assert gaussian_kernel(400, 5.0).argmax() == 15


def test_fingerprint_knows_the_options() -> None:
    prints = [
        ZOO['NACLIP'](plugin={**RESCLIP, **changes}).fingerprint()['plugin']
        for changes in ({}, {'sfr': False}, {'sfr': {'connectivity': 'full'}}, {'rcs': {'blocks': [1]}})
    ]
    assert all(one != other for i, one in enumerate(prints) for other in prints[:i])
    assert prints[0]['rcs']['blocks'] == [0, 1] and prints[1]['sfr'] is None


@pytest.mark.parametrize(
    ('kind', 'options', 'sentence'),
    [
        (CLIP, {}, r'rcs\.blocks must be blocks before the last, 0 to 1 in this CLIP'),
        (CLIP, {'rcs': {'blocks': [2]}}, r'rcs\.blocks must be'),
        (CLIP, {'rcs': {'blocks': []}}, r'rcs\.blocks must be'),
        (
            CLIP,
            {'rcs': {'lambda': 0.3}},
            'rcs.lambda is not an option of CrossCorrelation. Options: scale, weight, blocks',
        ),
        (CLIP, {'sfr': {'connectivity': 'none'}}, r"'partial', 'full' or None, not 'none'"),
        (MaskCLIP, {'rcs': False}, 'but MaskCLIP has none'),
        (ProxyCLIP, {'rcs': False}, 'but ProxyCLIP has none'),
    ],
)
def test_what_does_not_fit_is_refused(kind: type, options: dict, sentence: str) -> None:
    more = {'proxy': proxy(8)} if kind is ProxyCLIP else {}
    with pytest.raises(TPAError, match=sentence):
        kind(**clip_options(), **more, plugin={'type': 'ResCLIP', **options})
