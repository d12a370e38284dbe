"""How long the stages of an image take, on a CPU or a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

import torch
from mmseg.structures import SegDataSample
from torch import Tensor

from ..core import ENCODER, Adapter, Evidence, Lookup, PrototypeBank, ScoreMap, decide, label_type
from ..encoders import PixelNormalization
from ..hosts import Host, HostFeatures
from ..hosts.batch import unpad
from ..segmentors import TPASegmentor

T = TypeVar('T')
#: Name in a model's ``encoders`` of CLIP's plain visual tower, which is measured on its own.
CLIP = 'clip'


class RunStage(Protocol):
    """Runs a stage of some name, notes something about it, and returns its result."""

    def __call__(self, stage: str, run: Callable[[], T]) -> T: ...


class StageTimer:
    """Measures stages one by one: on a GPU by its own clock, between two events.

    Args:
        device: Where the stages run.

    Attributes:
        seconds: Stage -> seconds it took last.
    """

    def __init__(self, device: torch.device | str) -> None:
        self.seconds: dict[str, float] = {}
        self._time = self._on_gpu if torch.device(device).type == 'cuda' else self._on_cpu

    def __call__(self, stage: str, run: Callable[[], T]) -> T:
        """Run a stage, note its time, and return its result."""
        result, self.seconds[stage] = self._time(run)
        return result

    @staticmethod
    def _on_gpu(run: Callable[[], T]) -> tuple[T, float]:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        result = run()
        end.record()
        end.synchronize()
        return result, start.elapsed_time(end) / 1000

    @staticmethod
    def _on_cpu(run: Callable[[], T]) -> tuple[T, float]:
        start = time.perf_counter()
        result = run()
        return result, time.perf_counter() - start


@torch.no_grad()
def run_stages(
    model: TPASegmentor, data: dict, bank: PrototypeBank, run_stage: RunStage
) -> tuple[tuple[int, int], Tensor]:
    """Runs everything that TPA does with an image, stage by stage, in the columns of the paper's cost table and more.

    Args:
        model: Host and encoders, among them :data:`CLIP`.
        data: A batch of one image, as a data loader gives it.
        bank: A bank, to which the image is added.
        run_stage: Runs each stage, e.g. a :class:`StageTimer`.

    Returns:
        Height and width of the network's input, and the image's (D, h, w) features.
    """
    prepared = model.data_preprocessor(data, False)
    image, sample = prepared['inputs'][0], prepared['data_samples'][0]
    pixels, normalization = unpad(image, sample.metainfo), PixelNormalization.of(model.data_preprocessor)
    run_stage('clip', lambda: model.encoders[CLIP](pixels, normalization))
    shared = isinstance(model.encoder, HostFeatures)
    scores, of_host = run_stage('host', lambda: _host_pass(model.host, image, sample, shared))

    def encode() -> Tensor:
        return of_host if shared else model.encoder(pixels, normalization)

    phi = run_stage('encoder', encode)
    # The pool's images go through the same encoder; measured on its own, as the paper does.
    run_stage('bank_encoder_pass', encode)
    run_stage('bank_update', lambda: bank.add(Evidence(scores, {ENCODER: phi})))
    if phi.is_cuda:
        # The cache of a pool's features is in half precision, and in the memory of the CPU.
        cached = phi.half().cpu().pin_memory()
        run_stage('feature_transfer', lambda: cached.to(phi.device, non_blocking=True))
    prototypes = bank.prototypes()
    run_stage('lookup', lambda: _look_up(Lookup(prototypes, phi, scores.size), scores))
    evidence, adapter = Evidence(scores, {ENCODER: phi}), Adapter(prototypes, model.fusion)
    run_stage('decode', lambda: decide(evidence, [adapter], label_type(model.num_classes)))
    return tuple(image.shape[-2:]), phi


def _host_pass(host: Host, image: Tensor, sample: SegDataSample, shared: bool) -> tuple[ScoreMap, Tensor | None]:
    """The host's scores of an image, and its features where they are ``shared``.

    Mask refinement, which is done when rows are first read, is included.
    """
    if shared:
        (scores,), (features,) = host.scores_and_features(image[None], [sample])
    else:
        (scores,), features = host.score_maps(image[None], [sample]), None
    scores.log_band(0, 1)
    return scores, features


def _look_up(lookup: Lookup, scores: ScoreMap) -> None:
    """All cosines of an image, band by band."""
    for top, bottom in scores.ranges():
        lookup.band(top, bottom)
