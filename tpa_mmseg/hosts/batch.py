"""The images of a batch one by one: names, original sizes, and pixels without padding."""

from __future__ import annotations

from collections.abc import Sequence

from mmseg.structures import SegDataSample
from torch import Tensor


def original_size(image: Tensor, sample: SegDataSample | None) -> tuple[int, int]:
    """Returns the height and width of the labels of an image. Args: image (3, H, W)."""
    shape = None if sample is None else sample.metainfo.get('ori_shape')
    return tuple(int(side) for side in (shape or image.shape[-2:])[:2])


def image_name(sample: SegDataSample | None) -> str:
    """Returns the name of an image for messages."""
    path = None if sample is None else sample.metainfo.get('img_path')
    return str(path) if path else 'an image without a file name'


def split_batch(
    inputs: Tensor | Sequence[Tensor], data_samples: Sequence[SegDataSample] | None
) -> list[tuple[Tensor, SegDataSample | None]]:
    """Pairs every (3, H, W) image of a batch with its sample."""
    samples = [None] * len(inputs) if data_samples is None else data_samples
    return list(zip(inputs, samples, strict=True))


def padding(meta: dict) -> Sequence[int]:
    """Returns the (left, right, top, bottom) padding that the data preprocessor added."""
    return meta.get('img_padding_size', meta.get('padding_size', (0, 0, 0, 0)))


def unpad(image: Tensor, meta: dict) -> Tensor:
    """Removes the padding of the data preprocessor from (..., H, W)."""
    left, right, top, bottom = padding(meta)
    return image[..., top : image.shape[-2] - bottom, left : image.shape[-1] - right]
