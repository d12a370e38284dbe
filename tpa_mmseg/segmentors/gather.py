"""gather_evidence: the one place where host and encoders look at images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from mmseg.structures import SegDataSample
from torch import Tensor

from ..core import Evidence
from ..encoders import Encoder, PixelNormalization
from ..hosts import Host, HostFeatures
from ..hosts.batch import image_name, split_batch, unpad
from ..hosts.windows import run_batched


@torch.no_grad()
def gather_evidence(
    host: Host,
    encoders: Mapping[str, Encoder],
    normalization: PixelNormalization,
    inputs: Tensor | Sequence[Tensor],
    data_samples: Sequence[SegDataSample] | None = None,
) -> list[Evidence]:
    """The evidence of a batch: one pass of the host and one of each encoder that the host does not run itself.

    Args:
        host: The host.
        encoders: Name -> encoder; none for the host alone.
        normalization: What the data preprocessor did to the pixels.
        inputs: (N, 3, H, W) pre-processed images, or a list of (3, H, W) images of different sizes.
        data_samples: Their samples.
    """
    pairs = split_batch(inputs, data_samples)
    images = [unpad(image, {} if sample is None else sample.metainfo) for image, sample in pairs]
    shared = {name for name, encoder in encoders.items() if isinstance(encoder, HostFeatures)}
    if shared:
        maps, of_host = host.scores_and_features(inputs, data_samples)
    else:
        maps, of_host = host.score_maps(inputs, data_samples), []
    features = {
        name: of_host if name in shared else _encode(encoder, normalization, images)
        for name, encoder in encoders.items()
    }
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
    """(D, h, w) features of each image; on a GPU inputs of one size go through the network together."""
    prepared = [encoder.prepare(image[None], normalization)[0] for image in images]
    # A CPU gains nothing from a batch, and an image alone has the same bits in every batch.
    on_cpu = not prepared or prepared[0].device.type == 'cpu'
    return run_batched(encoder.dense, prepared, 1 if on_cpu else len(prepared))
