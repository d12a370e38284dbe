"""What goes around a host: it scores the host's windows in its own way and leaves everything else to the host."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from mmengine.dist import get_world_size
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from ..core import ScoreMap
from ..errors import TPAError
from ..hosts import CLIPHost, Host
from ..options import one_of


class HostWrapper(Host):
    """A layer around a CLIP host, and a host itself: alone, or inside a TPASegmentor.

    The host cuts images into windows, stitches what it gets back, refines and decides as it always does. What is
    learnt from images lies beside the host, whose weights stay what they are.

    Args:
        host: Config of a CLIP host, or the host.
        reset: When what was learnt is forgotten, one of :attr:`resets`. ``'image'``: before every image, which gets
            the numbers it gets alone. ``'batch'``: before every batch of the data loader, whose images are taken
            together. ``'stream'``: never during a test, so that each image depends on all before it.
        data_preprocessor: By default the host's.
        **kwargs: As for :class:`Host`, without ``num_classes`` and ``nonfinite``, which are the host's.

    Attributes:
        resets: What ``reset`` may be.
    """

    resets: tuple[str, ...] = ('image', 'batch', 'stream')

    def __init__(
        self, host: dict | CLIPHost, reset: str = 'image', data_preprocessor: dict | nn.Module | None = None, **kwargs
    ) -> None:
        host = host if isinstance(host, nn.Module) else MODELS.build(host)
        super().__init__(
            num_classes=getattr(host, 'num_classes', None),
            data_preprocessor=data_preprocessor or host.data_preprocessor,
            nonfinite=getattr(host, 'nonfinite', 'raise'),
            **kwargs,
        )
        self.check(host)
        self.host = host
        self.policy = one_of(f'{type(self).__name__}.reset', reset, self.resets)

    def check(self, host: nn.Module) -> None:
        """Refuses a host that this cannot go around, with a sentence."""
        if not isinstance(host, CLIPHost) or not host.scores_single_windows:
            raise TPAError(
                f'{type(self).__name__} goes around a host that compares single windows with text, such as NACLIP or '
                f'ProxyCLIP, and {type(host).__name__} does not: choose another host.'
            )

    def score_maps(
        self, inputs: Tensor | Sequence[Tensor], data_samples: Sequence[SegDataSample] | None = None
    ) -> list[ScoreMap]:
        if self.policy == 'stream' and get_world_size() > 1:
            raise TPAError(
                f"{type(self).__name__} with reset='stream' learns from all images in their order, which several ranks "
                "would divide among them: run it on one rank, or set reset='image'."
            )
        # The host's own precision is set where its network runs; nothing else is to be reduced.
        with torch.autocast(self.host.text_features.device.type, enabled=False):
            cuts = self.host.cut(inputs, data_samples)
            return self.host.score_maps_of(cuts, self.score_windows([cut.windows for cut in cuts]))

    @property
    def images_are_independent(self) -> bool:
        return self.policy == 'image'

    @abstractmethod
    def score_windows(self, windows: list[list[Tensor]]) -> list[list[Tensor]]:
        """The (3, h, w) windows of each image -> their (Q, gh, gw) cosines with the text, or what stands for them."""

    def own_names(self) -> Sequence[str] | None:
        return self.host.own_names()

    @abstractmethod
    def settings(self) -> dict:
        """The options that change the numbers, in the types of JSON."""

    def fingerprint(self) -> dict:
        return {
            **super().fingerprint(),
            'host': self.host.fingerprint(),
            'settings': {'reset': self.policy, **self.settings()},
        }


def entropy(logits: Tensor, dim: int) -> Tensor:
    """The entropy of ``softmax(logits)`` along a dimension, in nats."""
    log = logits.log_softmax(dim)
    return -(log.exp() * log).sum(dim)
