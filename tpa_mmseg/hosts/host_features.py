"""HostFeatures: the encoder that a host runs anyway serves the bank and the lookup too."""

from __future__ import annotations

from dataclasses import asdict

import torch
from mmseg.registry import MODELS
from torch import Tensor, nn

from ..encoders import Encoder, PixelNormalization
from ..errors import TPAError
from .base import Host
from .proxy_host import ProxyHost


@MODELS.register_module()
class HostFeatures(Encoder):
    """The patch features of the proxy inside ProxyCLIP or Trident, without a second pass over the image.

    They differ from those of the same encoder in a pass of its own: the host runs it on windows, each with a position
    embedding of its own and without the pixels around it, and where windows overlap their features are averaged. So a
    bank of one kind does not serve the other.
    """

    def __init__(self) -> None:
        nn.Module.__init__(self)  # the network is the host's and is registered there
        self._hosts: tuple[ProxyHost, ...] = ()
        self.eval()

    def attach(self, host: Host) -> None:
        """Takes the features of this host from now on. Raises TPAError for a host without an encoder inside."""
        if not isinstance(host, ProxyHost):
            raise TPAError(
                f'The encoder HostFeatures needs a host that runs an encoder itself (ProxyCLIP or Trident), '
                f'not {type(host).__name__}: choose another encoder, e.g. TimmEncoder.'
            )
        self._hosts = (host,)

    def __repr__(self) -> str:
        return f'HostFeatures({"of " + repr(self.host.proxy) if self._hosts else ""})'

    @property
    def host(self) -> ProxyHost:
        if not self._hosts:
            raise TPAError('HostFeatures is an encoder of a TPASegmentor: set model.encoder to it.')
        return self._hosts[0]

    @property
    def dim(self) -> int:
        return self.host.proxy.dim

    @property
    def patch(self) -> int:
        return self.host.proxy.patch

    @property
    def precision(self) -> str:
        return self.host.proxy.precision

    @torch.no_grad()
    def forward(self, images: Tensor, normalization: PixelNormalization) -> Tensor:
        """The features without the host's scores, by a pass of the proxy. Args: as for :meth:`Encoder.forward`."""
        features = self.host.proxy_maps(images if images.ndim == 4 else images[None])
        return torch.stack(features) if images.ndim == 4 else features[0]

    def encode(self, images: Tensor) -> Tensor:
        raise TPAError('HostFeatures has no network of its own: its features come with the scores of its host.')

    def fingerprint(self) -> dict:
        host = self.host
        return {
            'type': type(self).__name__,
            'proxy': host.proxy.fingerprint(),
            'proxy_size': host.proxy_size,
            'sliding': asdict(host.sliding),
        }
