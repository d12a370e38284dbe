"""The algebra of bilinear resizing against F.interpolate."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close
from tpa_tools.benchmarking import direct

from tests.core.cases import SHAPES, few
from tpa_mmseg.core import Grid, Resized, UpsampledNorm, axis_taps, spread_

sides = st.integers(1, 12)


def all_rows(source, step: int) -> torch.Tensor:
    """The whole map, taken in bands of ``step`` rows."""
    height = source.shape[1]
    return torch.cat([source.rows(top, min(height, top + step)) for top in range(0, height, step)], 1)


@pytest.mark.parametrize('align_corners', [False, True])
@pytest.mark.parametrize(('source', 'target'), [(24, 480), (336, 480), (3000, 4001), (2000, 333), (1, 7), (9, 1)])
def test_taps_are_the_ones_of_interpolate_to_the_last_bit(source, target, align_corners):
    low, high, weight = axis_taps(source, target, align_corners)
    # Zeros and ones in turn: the result of a resize is the weight of the ones itself.
    alternating = torch.arange(source, dtype=torch.float32) % 2
    expected = F.interpolate(alternating[None, None], target, mode='linear', align_corners=align_corners)[0, 0]
    assert torch.equal(alternating[low] * (1 - weight) + alternating[high] * weight, expected)


@pytest.mark.parametrize('align_corners', [False, True])
@pytest.mark.parametrize('step', [1, 5, 1000])
@pytest.mark.parametrize('shape', SHAPES.values(), ids=SHAPES)
def test_bands_of_a_resize_are_those_of_interpolate(shape, step, align_corners):
    values = torch.randn(3, *shape.scores)
    resized = Resized(values, shape.image, align_corners)
    assert resized.shape == (3, *shape.image)
    assert_close(all_rows(resized, step), direct.upsample(values, shape.image, align_corners), atol=2e-6, rtol=0)


@pytest.mark.parametrize('corners', [(False, False), (True, True), (False, True)])
@pytest.mark.parametrize('sizes', [((14, 18), (30, 41)), ((20, 9), (11, 23)), ((5, 6), (5, 6))])
def test_chained_resizes_are_two_interpolate_calls(sizes, corners):
    values = torch.randn(4, 5, 6)
    expected = values
    resized = Grid(values)
    for size, align_corners in zip(sizes, corners, strict=True):
        expected = direct.upsample(expected, size, align_corners)
        resized = Resized(resized, size, align_corners)
    assert_close(all_rows(resized, 4), expected, atol=2e-6, rtol=0)


@few
@given(source=st.tuples(sides, sides), target=st.tuples(sides, sides), step=st.integers(1, 12))
def test_a_row_has_the_same_bits_in_every_band(source, target, step):
    resized = Resized(torch.randn(2, *source), target)
    assert torch.equal(all_rows(resized, step), resized.rows(0, target[0]))


@few
@given(source=st.tuples(sides, sides), target=st.tuples(sides, sides), order=st.randoms())
def test_bands_may_be_read_in_any_order(source, target, order):
    values = torch.randn(2, *source)
    resized, whole = Resized(values, target), Resized(values, target).rows(0, target[0])
    bands = [(top, min(top + rows, target[0])) for top in range(target[0]) for rows in (1, 3)]
    order.shuffle(bands)
    for top, bottom in bands:
        assert torch.equal(resized.rows(top, bottom), whole[:, top:bottom])


@pytest.mark.parametrize('size', [(18, 21), (6, 21), (18, 7), (4, 3)])
def test_nan_reaches_the_pixels_that_interpolate_gives_it_and_no_others(size):
    values = torch.randn(2, 6, 7)
    values[0, 2, 3] = float('nan')
    expected = direct.upsample(values, size).isnan()
    for step in (1, 2, 100):
        assert torch.equal(all_rows(Resized(values, size), step).isnan(), expected)


@few
@given(
    patches=st.tuples(sides, sides), size=st.tuples(sides, sides), step=st.integers(1, 12), lowest=st.integers(-30, 0)
)
def test_spreading_is_the_adjoint_of_upsampling(patches, size, step, lowest):
    """<Up x, y> = <x, Up* y>, for y the indicator of each class, whatever the bands and the share of anchors."""
    labels = torch.randint(lowest, 3, size)
    phi = torch.randn(*patches, dtype=torch.float64)
    weights = torch.zeros(3, *patches, dtype=torch.float64)
    for top in range(0, size[0], step):
        spread_(weights, labels[top : top + step], top, size)
    upsampled = direct.upsample(phi[None], size)[0]
    for label in range(3):
        assert_close((weights[label] * phi).sum(), upsampled[labels == label].sum(), atol=1e-5, rtol=1e-6)


def test_spreading_keeps_the_number_of_pixels():
    labels = torch.randint(-1, 4, (17, 23))
    weights = torch.zeros(4, 5, 6, dtype=torch.float64)
    spread_(weights, labels, 0, (17, 23))
    counts = torch.stack([(labels == label).sum() for label in range(4)])
    assert_close(weights.sum((1, 2)), counts.double())


@pytest.mark.parametrize('shape', SHAPES.values(), ids=SHAPES)
def test_norm_is_the_norm_of_the_upsampled_features(shape):
    phi = torch.randn(19, *shape.grid)
    norm = UpsampledNorm(phi, shape.image)
    banded = torch.cat([norm.rows(top, min(shape.image[0], top + 3)) for top in range(0, shape.image[0], 3)])
    assert banded.dtype == torch.float32
    assert_close(banded, direct.upsample(phi, shape.image).norm(dim=0), atol=0, rtol=1e-5)


def test_norm_does_not_depend_on_how_the_patches_are_cut(monkeypatch):
    phi = torch.randn(7, 9, 5)
    whole = UpsampledNorm(phi, (40, 33)).rows(0, 40)
    for elements in (1, 300, 600):
        monkeypatch.setattr('tpa_mmseg.core.bilinear._BAND_ELEMENTS', {'cpu': elements})
        assert torch.equal(UpsampledNorm(phi, (40, 33)).rows(0, 40), whole)


def test_norm_survives_neighbors_that_almost_cancel():
    feature = torch.randn(64, 1, 1)
    phi = torch.cat((feature, -0.999 * feature), 2)
    norm = UpsampledNorm(phi, (1, 101)).rows(0, 1)
    # In the middle, a thousandth of the features is left, and a millionth of their squares.
    assert norm.min() < 1e-3 * feature.norm()
    assert_close(norm, direct.upsample(phi.double(), (1, 101)).norm(dim=0).float(), atol=0, rtol=1e-3)
