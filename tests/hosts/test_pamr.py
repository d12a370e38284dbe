"""Mask refinement equals its definition, however it is cut into pieces."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tpa_mmseg.hosts import pamr


def neighbors(maps: torch.Tensor, dilations: tuple[int, ...]) -> torch.Tensor:
    """(8 * len(dilations), C, H, W), by the definition: index arithmetic clamped to the border."""
    height, width = maps.shape[-2:]
    shifted = []
    for d in dilations:
        for down in (-d, 0, d):
            for right in (-d, 0, d):
                if down or right:
                    rows = (torch.arange(height) + down).clamp(0, height - 1)
                    columns = (torch.arange(width) + right).clamp(0, width - 1)
                    shifted.append(maps[:, rows][:, :, columns])
    return torch.stack(shifted)


def refine_by_definition(scores, image, steps, dilations) -> torch.Tensor:
    around = neighbors(image, dilations)
    samples = torch.cat((around, image.expand(len(dilations), -1, -1, -1)))
    affinity = (-(around - image).abs() / (1e-8 + 0.1 * samples.std(0))).mean(1).softmax(0)
    for _ in range(steps):
        scores = (affinity[:, None] * neighbors(scores, dilations)).sum(0)
    return scores


@pytest.mark.parametrize(('steps', 'dilations'), [(10, (8, 16)), (3, (1, 2, 4)), (1, (5,))])
def test_refinement_equals_its_definition(steps: int, dilations: tuple[int, ...]) -> None:
    scores, image = torch.randn(5, 21, 34), torch.randn(3, 21, 34)
    expected = refine_by_definition(scores, image, steps, dilations)
    torch.testing.assert_close(pamr.refine_(scores.clone(), image, steps, dilations), expected, atol=1e-5, rtol=0)


def test_pieces_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, image = torch.randn(7, 40, 30), F.avg_pool2d(torch.randn(3, 44, 34), 5, 1)
    whole = pamr.refine_(scores.clone(), image, 4, (2, 9))
    monkeypatch.setitem(pamr._CHUNK_ELEMENTS, 'cpu', 2 * scores[0].numel())
    monkeypatch.setattr(pamr, '_BAND_ROWS', 3)
    torch.testing.assert_close(pamr.refine_(scores.clone(), image, 4, (2, 9)), whole, atol=1e-6, rtol=0)


def test_affinities_prefer_neighbors_of_the_same_color() -> None:
    image = torch.zeros(3, 8, 8)
    image[:, :, 4:] = 1
    affinity = pamr.affinities(image, (1,))
    torch.testing.assert_close(affinity.sum(0), torch.ones(8, 8))
    left, right = affinity[3], affinity[4]
    assert (left[:, 3] > right[:, 3]).all() and (right[:, 4] > left[:, 4]).all()


def test_a_map_is_refined_when_it_is_first_read_and_forgotten_when_it_is_released() -> None:
    small, image, size = torch.randn(5, 6, 8), torch.randn(3, 48, 64), (45, 70)
    scores, guide = (F.interpolate(each[None], size, mode='bilinear')[0] for each in (small, image))
    expected = pamr.refine_(scores.clone(), guide, 3, (2, 4))
    refined = pamr.RefinedMap(small, image, size, 3, (2, 4))
    assert refined.shape == (5, 45, 70)
    held = small.nbytes + image.nbytes
    assert refined.nbytes == held
    with torch.autocast('cpu', torch.bfloat16):  # which is not meant for it
        torch.testing.assert_close(refined.rows(7, 20), expected[:, 7:20], atol=1e-6, rtol=0)
    first = refined.rows(0, 45)
    assert refined.nbytes == held + expected.nbytes
    assert refined.rows(0, 45).data_ptr() == first.data_ptr()
    refined.release()
    assert refined.nbytes == held
    assert torch.equal(refined.rows(0, 45), first)
