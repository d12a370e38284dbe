"""Base class of encoders: frozen dense features of an image, whatever the host's pipeline did to its pixels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..core.tables import kept_per_shape, to_device
from ..errors import TPAError
from ..layers.precision import PRECISION_OPTIONS, autocast_to, used_precision
from ..layers.resize import nearest_multiple, resize
from ..options import one_of
from ..weights.files import digest


@dataclass(frozen=True)
class PixelNormalization:
    """The normalization that a data preprocessor applied to the pixels of an image.

    Args:
        mean: Subtracted from each channel, in units of 0 to 255; one value for all channels, or one for each.
        std: Divided by afterward.
        rgb: True for channels in the order red, green, blue; False for blue, green, red.
    """

    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    rgb: bool = True

    @classmethod
    def of(cls, data_preprocessor: nn.Module) -> PixelNormalization:
        """Reads MMSegmentation's data preprocessor, stock or fork. Its input is BGR, as OpenCV reads images."""
        # In the maintained fork of mmseg the attribute has an underscore.
        flipped = getattr(data_preprocessor, 'channel_conversion', None)
        if flipped is None:
            flipped = getattr(data_preprocessor, '_channel_conversion', False)
        # The buffers exist only if normalization is enabled.
        mean, std = (getattr(data_preprocessor, name, None) for name in ('mean', 'std'))
        if mean is None or std is None:
            return cls(rgb=bool(flipped))
        return cls(tuple(mean.flatten().tolist()), tuple(std.flatten().tolist()), bool(flipped))

    def undo(self, images: Tensor) -> Tensor:
        """Returns (..., 3, H, W) images as float32 RGB in 0 to 1."""
        mean, std = (_per_channel(values, str(images.device)) for values in (self.mean, self.std))
        pixels = (images.float() * std + mean) / 255
        return pixels if self.rgb else pixels.flip(-3)


@kept_per_shape(64)
def _per_channel(values: tuple[float, ...], device: str) -> Tensor:
    """(n, 1, 1) float32 statistics on a device."""
    return to_device(np.array(values, np.float32)[:, None, None], device)


class Encoder(nn.Module, ABC):
    """A frozen network with dense features, always in evaluation mode and without gradients.

    Args:
        network: The network; subclasses call it in :meth:`encode`.
        dim: Number D of feature channels.
        patch: Side of the square of pixels behind one feature.
        mean: Statistics with which the network's input is normalized: RGB, in units of 0 to 1.
        std: The same for the standard deviation.
        short_side: Resize images so that their short side has about this many pixels, instead of taking them at the
            size of the host's pipeline. The aspect ratio is kept.
        max_tokens: Shrink images that would have more patches than this. The time of attention grows with the square
            of their number; fewer patches mean coarser features. Default: any number.
        precision: ``'float32'``, ``'float16'`` or ``'bfloat16'`` through autocast, or ``'auto'``: :attr:`half` on CUDA,
            float32 elsewhere.

    Attributes:
        fixed_size: Height and width to which :meth:`dense` resizes all images, if the network has one input size.
        half: The half precision that ``'auto'`` stands for.
    """

    fixed_size: tuple[int, int] | None = None
    half: str = 'bfloat16'

    def __init__(
        self,
        network: nn.Module,
        *,
        dim: int,
        patch: int,
        mean: Sequence[float],
        std: Sequence[float],
        short_side: int | None = None,
        max_tokens: int | None = None,
        precision: str = 'auto',
    ) -> None:
        super().__init__()
        if short_side is not None and short_side < 1:
            raise TPAError(f'encoder.short_side must be a positive number of pixels or None, not {short_side!r}.')
        if max_tokens is not None and max_tokens < 1:
            raise TPAError(f'encoder.max_tokens must be a positive number of patches or None, not {max_tokens!r}.')
        self.network = network.requires_grad_(False)
        self.dim = int(dim)
        self.patch = int(patch)
        self.short_side = short_side
        self.max_tokens = max_tokens
        self._precision = one_of('encoder.precision', precision, PRECISION_OPTIONS)
        self.register_buffer('mean', torch.tensor(mean).view(3, 1, 1), persistent=False)
        self.register_buffer('std', torch.tensor(std).view(3, 1, 1), persistent=False)
        self.eval()

    def __repr__(self) -> str:
        size = sum(parameter.numel() for parameter in self.parameters()) / 1e6
        return f'{type(self).__name__}({self.dim} features, patches of {self.patch} pixels, {size:.1f} M parameters)'

    @property
    def precision(self) -> str:
        """The type in which the network computes where it is now."""
        return used_precision(self._precision, self.mean.device, self.half)

    @abstractmethod
    def encode(self, images: Tensor) -> Tensor:
        """Runs the network: (B, 3, H, W) normalized images, sides multiples of the patch -> (B, D, h, w)."""

    @torch.no_grad()
    def dense(self, images: Tensor) -> Tensor:
        """Computes the features of a batch.

        Args:
            images: (B, 3, H, W) images, normalized with the encoder's own statistics, sides multiples of the patch.

        Returns:
            (B, D, h, w) float32 features.
        """
        if any(side % self.patch or not side for side in images.shape[-2:]):
            raise ValueError(f'{tuple(images.shape[-2:])} is not a multiple of the patch, {self.patch}')
        weight = next(self.network.parameters())
        with autocast_to(weight.device, self.precision):
            return self.encode(images.to(weight)).float()

    @torch.no_grad()
    def forward(self, images: Tensor, normalization: PixelNormalization) -> Tensor:
        """Computes the features of an image or of a batch, in one pass over whole images.

        Args:
            images: (3, H, W), or (B, 3, H, W), as the host's data preprocessor gives them, of any float type.
            normalization: Of that data preprocessor.

        Returns:
            (D, h, w) or (B, D, h, w) float32 features.
        """
        batch = self.prepare(images if images.ndim == 4 else images[None], normalization)
        features = self.dense(batch)
        return features if images.ndim == 4 else features[0]

    def prepare(self, images: Tensor, normalization: PixelNormalization) -> Tensor:
        """Returns the (B, 3, h, w) input of :meth:`dense` for (B, 3, H, W) images. Args: as for :meth:`forward`."""
        pixels = (normalization.undo(images.to(self.mean.device)) - self.mean) / self.std
        return resize(pixels, self.input_size(*images.shape[-2:]))

    def input_size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the network's input for an image of that size."""
        short = min(height, width)
        height, width = (side * (self.short_side or short) / short for side in (height, width))
        rows, columns = (nearest_multiple(side, self.patch) // self.patch for side in (height, width))
        if self.max_tokens is not None and rows * columns > self.max_tokens:
            # Rounded down, and at least one patch in each direction.
            shrink = (self.max_tokens * self.patch**2 / (height * width)) ** 0.5
            rows = min(max(1, int(height * shrink / self.patch)), self.max_tokens)
            columns = min(max(1, int(width * shrink / self.patch)), self.max_tokens // rows)
        return rows * self.patch, columns * self.patch

    def fingerprint(self) -> dict:
        """Identifies the encoder: its weights and all options that change its features, in the types of JSON."""
        bounded = {} if self.max_tokens is None else {'max_tokens': self.max_tokens}
        return {
            'type': type(self).__name__,
            'short_side': self.short_side,
            **bounded,
            'mean': [round(value, 6) for value in self.mean.flatten().tolist()],
            'std': [round(value, 6) for value in self.std.flatten().tolist()],
            'precision': self.precision,
            'weights': digest(self.network),
        }

    def train(self, mode: bool = True) -> Encoder:
        """Encoders are frozen: they stay in evaluation mode."""
        return super().train(False)
