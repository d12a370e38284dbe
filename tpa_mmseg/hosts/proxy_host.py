"""Base class of ProxyCLIP and Trident: a second frozen encoder (the proxy) runs on the same windows as CLIP."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from ..clip.source import CLIPSpec
from ..core import ScoreMap
from ..encoders import Encoder
from ..errors import TPAError
from ..layers.resize import resize
from ..options import AtLeastOne, Positive
from .clip_host import CLIPHost
from .proxy_attention import grid_values
from .window_features import image_features
from .windows import Cut, run_on_windows


class ProxyHost(CLIPHost):
    """CLIP with proxy attention in its last block, without residual connection and feed-forward.

    Args:
        proxy: Config of the encoder whose similarities mix CLIP's values.
        beta: Cosines below ``beta`` times the mean cosine do not count.
        gamma: Inverse temperature of the cosines that do.
        proxy_size: Side of the square to which windows are resized for the proxy, None to take them as they are.
            ``'auto'`` is the original's choice: ``slide_crop`` for MAE, None for all others (SAM stretches every window
            to its input size).
        **kwargs: As for :class:`CLIPHost`.
    """

    def __init__(
        self,
        clip: Annotated[dict, CLIPSpec],
        proxy: dict | Encoder,
        beta: float = 1.2,
        gamma: Positive = 3.0,
        proxy_size: AtLeastOne | Literal['auto'] | None = 'auto',
        **kwargs,
    ) -> None:
        super().__init__(clip, **kwargs)
        self.proxy = proxy if isinstance(proxy, Encoder) else MODELS.build(proxy)
        if not isinstance(self.proxy, Encoder):
            raise TPAError(f'proxy must be an encoder, e.g. TimmEncoder, not {type(self.proxy).__name__}.')
        self.proxy.half = 'float16'  # as the original: its cosines pass a threshold, for which bfloat16 is coarse
        if not gamma > 0:
            raise TPAError(f'gamma must be positive, not {gamma}.')
        self.beta, self.gamma = float(beta), float(gamma)
        if proxy_size == 'auto':
            of_mae = getattr(self.proxy, 'position', None) == 'size'
            proxy_size = self.sliding.crop or None if of_mae else None
        if proxy_size is not None and not (isinstance(proxy_size, int) and proxy_size >= self.proxy.patch):
            raise TPAError(
                f"proxy_size must be 'auto', None or at least one patch of {self.proxy.patch} pixels, "
                f'not {proxy_size!r}.'
            )
        self.proxy_size = proxy_size
        if proxy_size is None and self.proxy.fixed_size is None and not self.sliding.whole:
            self._whole_patches(self.sliding.spans(self.sliding.crop)[0].padded)
        for name, values in zip(('clip_mean', 'clip_std'), self.statistics, strict=True):
            self.register_buffer(name, torch.tensor(values).view(3, 1, 1), persistent=False)

    def pixels(self, images: Tensor) -> Tensor:
        """Returns CLIP-normalized (..., 3, h, w) images as float32 RGB in 0 to 1; zero padding becomes CLIP's mean."""
        return images.float() * self.clip_std + self.clip_mean

    def proxy_features(self, images: Tensor) -> Tensor:
        """(B, 3, h, w) CLIP-normalized windows -> (B, P, gh, gw) float32 features of the proxy."""
        images = (self.pixels(images) - self.proxy.mean) / self.proxy.std
        if self.proxy_size is not None:
            images = resize(images, (self.proxy_size, self.proxy_size))
        if self.proxy.fixed_size is None:
            images = images[..., : self._whole_patches(images.shape[2]), : self._whole_patches(images.shape[3])]
        return self.proxy.dense(images)

    def scores_and_features(
        self, inputs: Tensor | Sequence[Tensor], data_samples: Sequence[SegDataSample] | None = None
    ) -> tuple[list[ScoreMap], list[Tensor]]:
        """Runs the networks once. Args: as for :meth:`score_maps`.

        Returns:
            The scores of every image, and the (P, h, w) float32 features of the proxy, joined from its windows.
        """
        cuts = self.cut(inputs, data_samples)
        found = run_on_windows(self.maps_and_proxy, [cut.windows for cut in cuts], self.windows_per_call)
        scores = self.score_maps_of(cuts, [[self.without_proxy(window) for window in maps] for maps in found])
        return scores, [self._image_features(cut, maps) for cut, maps in zip(cuts, found, strict=True)]

    def proxy_maps(self, inputs: Tensor | Sequence[Tensor]) -> list[Tensor]:
        """Runs the proxy alone. Returns the (P, h, w) features of every image, as :meth:`scores_and_features`."""
        cuts = self.cut(inputs)
        found = run_on_windows(self.proxy_features, [cut.windows for cut in cuts], self.windows_per_call)
        return [self._image_features(cut, maps) for cut, maps in zip(cuts, found, strict=True)]

    def _image_features(self, cut: Cut, maps: Sequence[Tensor]) -> Tensor:
        """The features of an image. Args: cut; maps: of its windows, the proxy's P channels last."""
        size = self.fitted_size(tuple(cut.image.shape[-2:]))
        return image_features([window[-self.proxy.dim :] for window in maps], self.sliding, size)

    @abstractmethod
    def maps_and_proxy(self, images: Tensor) -> Tensor:
        """(B, 3, h, w) windows -> (B, K + P, gh, gw): what their scores are made of, and the proxy's features."""

    def without_proxy(self, window: Tensor) -> Tensor:
        """The part of a (K + P, gh, gw) map from :meth:`maps_and_proxy` that :meth:`score_maps_of` takes."""
        return window[: -self.proxy.dim]

    def _whole_patches(self, side: int) -> int:
        """Returns the number of pixels up to the last whole patch; CLIP drops the rest as well."""
        if side < self.proxy.patch:
            raise TPAError(
                f'A window of {side} pixels is smaller than one patch of the proxy, {self.proxy.patch}: '
                'resize images to a larger scale in the test pipeline.'
            )
        return side // self.proxy.patch * self.proxy.patch

    def values(self, images: Tensor, grid: tuple[int, int]) -> Tensor:
        """(B, 3, h, w) windows -> (B, D, gh, gw) values of CLIP's last block on the proxy's ``grid``."""
        own = self.tower.grid(tuple(images.shape[-2:]))
        return grid_values(self.tower.blocks[-1], self.tower.trunk(images), own, grid)

    def settings(self) -> dict:
        proxy = {name: value for name, value in self.proxy.fingerprint().items() if name != 'weights'}
        return {
            **super().settings(),
            'proxy': proxy,
            'proxy_size': self.proxy_size,
            'beta': self.beta,
            'gamma': self.gamma,
        }
