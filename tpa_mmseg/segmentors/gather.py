"""gather_evidence: the one place where host and encoders look at images."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import torch
from mmseg.structures import SegDataSample
from torch import Tensor

from ..core import Evidence
from ..encoders import Encoder, PixelNormalization
from ..hosts import Host
from ..hosts.batch import image_name, split_batch, unpad


@torch.no_grad()
def gather_evidence(
    host: Host,
    encoders: Mapping[str, Encoder],
    normalization: PixelNormalization,
    inputs: Tensor | Sequence[Tensor],
    data_samples: Sequence[SegDataSample] | None = None,
) -> list[Evidence]:
    """The evidence of a batch: one pass of the host and one of each encoder.

    Args:
        host: The host.
        encoders: Name -> encoder; none for the host alone.
        normalization: What the data preprocessor did to the pixels.
        inputs: (N, 3, H, W) pre-processed images, or a list of (3, H, W) images of different sizes.
        data_samples: Their samples.
    """
    pairs = split_batch(inputs, data_samples)
    images = [unpad(image, {} if sample is None else sample.metainfo) for image, sample in pairs]
    maps = host.score_maps(inputs, data_samples)
    features = {name: _encode(encoder, normalization, images) for name, encoder in encoders.items()}
    gathered = []
    for index, ((_, sample), scores) in enumerate(zip(pairs, maps, strict=True)):
        own = {name: of_all[index] for name, of_all in features.items()}
        evidence = Evidence(scores, own, image_name(sample))
        for name, phi in own.items():
            evidence.alarms.add(
                torch.isnan(phi).any(),
                f'The encoder {type(encoders[name]).__name__} returned NaN for {image_name(sample)}: '
                'check its weights and precision.',
            )
        gathered.append(evidence)
    return gathered


def _encode(encoder: Encoder, normalization: PixelNormalization, images: Sequence[Tensor]) -> list[Tensor]:
    """(D, h, w) features of each image; on a GPU images of one size go through the network together."""
    groups: dict[tuple, list[int]] = defaultdict(list)
    for index, image in enumerate(images):
        # A CPU gains nothing from a batch, and an image alone has the same bits in every batch.
        groups[(tuple(image.shape), index if image.device.type == 'cpu' else None)].append(index)
    features: dict[int, Tensor] = {}
    for members in groups.values():
        batch = encoder(torch.stack([images[index] for index in members]), normalization)
        features.update(zip(members, batch, strict=True))
    return [features[index] for index in range(len(images))]
