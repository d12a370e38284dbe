"""HostWrapper: base class of methods around a host, which score its windows in another way."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated

import torch
from mmengine.dist import get_world_size
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from ..core import ScoreMap
from ..errors import TPAError
from ..hosts import CLIPHost, Host
from ..options import Choice, one_of


class HostWrapper(Host):
    """A layer around a CLIP host, and a host itself: alone, or inside a TPASegmentor.

    The host cuts images into windows, stitches their scores, refines and decides as usual. What is learned from images
    is stored beside the host, whose weights do not change.

    Args:
        host: Config of a CLIP host, or the host.
        scope: Images that are learned from together, one of :attr:`scopes`. ``'image'``: what was learned is forgotten
            before every image, which gets the scores it gets alone. ``'batch'``: before every batch of the data loader.
            ``'stream'``: never during a test, so that each image depends on all before it.
        data_preprocessor: Default: the host's.
        **kwargs: As for :class:`Host`, without ``num_classes`` and ``nonfinite``, which are the host's.

    Attributes:
        scopes: Values of ``scope``.
    """

    scopes: tuple[str, ...] = ('image', 'batch', 'stream')

    def __init__(
        self,
        host: dict | CLIPHost,
        scope: Annotated[str, Choice('scopes')] = 'image',
        data_preprocessor: dict | nn.Module | None = None,
        **kwargs,
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
        self.scope = one_of(f'{type(self).__name__}.scope', scope, self.scopes)

    def check(self, host: nn.Module) -> None:
        """Raises TPAError for a host that cannot be wrapped."""
        if not isinstance(host, CLIPHost) or not host.scores_single_windows:
            raise TPAError(
                f'{type(self).__name__} cannot wrap {type(host).__name__}, which does not compare single windows with '
                'text: choose another host, e.g. NACLIP or ProxyCLIP.'
            )

    def score_maps(
        self, inputs: Tensor | Sequence[Tensor], data_samples: Sequence[SegDataSample] | None = None
    ) -> list[ScoreMap]:
        if self.scope == 'stream' and get_world_size() > 1:
            raise TPAError(
                f"{type(self).__name__} with scope='stream' learns from all images in their order, which several ranks "
                "would divide among them: run it on one rank, or set scope='image'."
            )
        # The host sets its own precision around its network; nothing else is to be reduced.
        with torch.autocast(self.host.text_features.device.type, enabled=False):
            cuts = self.host.cut(inputs, data_samples)
            return self.host.score_maps_of(cuts, self.score_windows([cut.windows for cut in cuts]))

    @property
    def images_are_independent(self) -> bool:
        return self.scope in ('image', 'window')

    @abstractmethod
    def score_windows(self, windows: list[list[Tensor]]) -> list[list[Tensor]]:
        """The (3, h, w) windows of each image -> their (Q, gh, gw) scores, on the scale of cosines with the text."""

    def caveats(self) -> list[str]:
        return self.host.caveats()

    def own_names(self) -> Sequence[str] | None:
        return self.host.own_names()

    @abstractmethod
    def settings(self) -> dict:
        """Returns the options that change the scores, in the types of JSON."""

    def fingerprint(self) -> dict:
        return {
            **super().fingerprint(),
            'host': self.host.fingerprint(),
            'settings': {'scope': self.scope, **self.settings()},
        }


def entropy(logits: Tensor, dim: int) -> Tensor:
    """The entropy of ``softmax(logits)`` along a dimension, in nats."""
    # Not log.exp() instead of softmax: ten steps of Adam turn its rounding into visible digits.
    return -(logits.softmax(dim) * logits.log_softmax(dim)).sum(dim)
