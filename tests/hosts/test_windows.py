"""Windows: where they lie, and that stitching band by band is stitching full tensors."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tpa_mmseg.core import Resized
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts.windows import Sliding, StitchedWindows, run_batched


def stitch_full(maps: list, sliding: Sliding, network: tuple[int, int], size: tuple[int, int]) -> torch.Tensor:
    """The plain way: every window at full size, summed, divided, resized."""
    total, visits, remaining = torch.zeros(maps[0].shape[0], *network), torch.zeros(network), iter(maps)
    for y in sliding.spans(network[0]):
        for x in sliding.spans(network[1]):
            window = F.interpolate(next(remaining)[None], (y.padded, x.padded), mode='bilinear')[0]
            window = window[:, y.before : y.padded - y.after, x.before : x.padded - x.after]
            total[:, y.start : y.stop, x.start : x.stop] += window
            visits[y.start : y.stop, x.start : x.stop] += 1
    return F.interpolate((total / visits)[None], size, mode='bilinear')[0]


def random_maps(sliding: Sliding, network: tuple[int, int], patch: int = 16) -> list[torch.Tensor]:
    return [
        torch.randn(5, max(1, window.shape[1] // patch), max(1, window.shape[2] // patch))
        for window in sliding.cut(torch.zeros(3, *network))
    ]


CASES = {
    'overlapping': (Sliding(64, 32), (80, 108), (51, 69)),
    'not overlapping': (Sliding(64, 64), (80, 108), (120, 161)),
    'window larger than the image': (Sliding(112, 56), (101, 70), (62, 43)),
    'one side smaller than the window': (Sliding(64, 48), (40, 200), (55, 311)),
    'padded to the patch': (Sliding(64, 32, pad_to=14), (80, 108), (51, 69)),
    'padded to 56': (Sliding(100, 60, pad_to=56), (131, 183), (99, 139)),
    'whole image in two steps': (Sliding(0, 1), (70, 101), (90, 77)),
    'original size': (Sliding(48, 16), (80, 64), (80, 64)),
}


@pytest.mark.parametrize('case', CASES)
@pytest.mark.parametrize('rows', [1, 7, 1000])
def test_stitched_bands_equal_the_stitched_full_tensor(case: str, rows: int) -> None:
    sliding, network, size = CASES[case]
    maps = random_maps(sliding, network)
    stitched = StitchedWindows(maps, sliding, network, size)
    bands = [stitched.rows(top, min(top + rows, size[0])) for top in range(0, size[0], rows)]
    assert stitched.shape == (5, *size)
    expected = stitch_full(maps, sliding, network, size)
    torch.testing.assert_close(torch.cat(bands, 1), expected, atol=1e-5, rtol=0)


def test_stitched_map_may_be_resized_further() -> None:
    sliding, network, size = CASES['overlapping']
    maps = random_maps(sliding, network)
    chained = Resized(StitchedWindows(maps, sliding, network, network), size)
    direct = StitchedWindows(maps, sliding, network, size)
    torch.testing.assert_close(chained.rows(3, 9), direct.rows(3, 9), atol=1e-5, rtol=0)


def test_nan_of_one_window_stays_in_that_window() -> None:
    sliding, network = Sliding(64, 64), (64, 128)
    left, right = random_maps(sliding, network)
    left[:, 0, 0] = float('nan')
    stitched = StitchedWindows([left, right], sliding, network, network).rows(0, 64)
    expected = stitch_full([left, right], sliding, network, network)
    assert torch.equal(stitched.isnan(), expected.isnan())
    torch.testing.assert_close(stitched, expected, atol=1e-5, rtol=0, equal_nan=True)


def test_windows_follow_the_rule_of_mmsegmentation() -> None:
    spans = Sliding(224, 112).spans(448)
    assert [(s.start, s.stop) for s in spans] == [(0, 224), (112, 336), (224, 448)]
    # The last window is pulled back to the border.
    assert [(s.start, s.stop) for s in Sliding(64, 32).spans(108)] == [(0, 64), (32, 96), (44, 108)]
    assert [(s.start, s.stop) for s in Sliding(64, 32).spans(40)] == [(0, 40)]


def test_padding_is_centered_and_made_of_zeros() -> None:
    image = torch.ones(3, 50, 70)
    (window,) = Sliding(112, 56, pad_to=16).cut(image)
    assert window.shape == (3, 64, 80)
    assert torch.equal(window[:, 7:57, 5:75], image)
    assert window.sum() == image.sum()
    odd = Sliding(112, 56, pad_to=16).spans(51)[0]
    assert (odd.before, odd.after) == (6, 7)


def test_whole_images_are_never_padded() -> None:
    (window,) = Sliding(0, 1, pad_to=16).cut(torch.ones(3, 50, 70))
    assert window.shape == (3, 50, 70)


@pytest.mark.parametrize('batch', [1, 2, 100])
def test_images_of_all_sizes_come_back_in_order(batch: int) -> None:
    images = [torch.full((3, side, 8), float(i)) for i, side in enumerate((4, 6, 4, 4, 6))]
    sizes = []

    def network(stack: torch.Tensor) -> torch.Tensor:
        sizes.append(len(stack))
        return stack.mean((1, 2, 3))

    assert [float(out) for out in run_batched(network, images, batch)] == [0, 1, 2, 3, 4]
    assert max(sizes) <= batch and sum(sizes) == 5
    assert len(sizes) == {1: 5, 2: 3, 100: 2}[batch]


@pytest.mark.parametrize(
    ('crop', 'stride'), [(-1, 1), (64, 0), (64, 65), (64, -3), ((64, 64), 32), (None, 32), (64, 32.5)]
)
def test_windows_that_cannot_be_are_refused(crop: object, stride: object) -> None:
    with pytest.raises(TPAError, match='slide_crop|slide_stride'):
        Sliding(crop, stride)
