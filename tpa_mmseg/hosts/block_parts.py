"""CLIP's last block, taken apart for plug-ins: its values, the host's attention, and the rest of the block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from mmseg.registry import MODELS
from torch import Tensor

from ..errors import TPAError
from .clip_host import CLIPHost


@dataclass(frozen=True)
class BlockParts:
    """The last block of a host on some windows.

    The host's features are ``finish(mix(values))``; a plug-in computes something else between the two. The attention
    matrix itself never has to exist: products of several matrices are applied to values one after the other.

    Attributes:
        values: (B, heads, T, d) values; the patches are the last h w of the T tokens.
        grid: Height h and width w of the patches.
        mix: The host's attention, applied to any values of this shape.
        finish: (B, heads, T, d) mixed values -> (B, E, h, w) features in the space of the text, not normalized.
    """

    values: Tensor
    grid: tuple[int, int]
    mix: Callable[..., Tensor]
    finish: Callable[[Tensor], Tensor]

    @property
    def patches(self) -> slice:
        """The patches among the tokens; a class token comes first."""
        return slice(self.values.shape[2] - self.grid[0] * self.grid[1], None)

    def features(self) -> Tensor:
        """Returns the (B, E, h, w) features of the host without a plug-in."""
        return self.finish(self.mix(self.values))


class Plugin(ABC):
    """A method that changes the features of a host from inside. It has no weights."""

    def check(self, host: CLIPHost) -> None:  # noqa: B027, most plug-ins work in every host that can be opened
        """Raises TPAError for a host that the plug-in does not support."""

    @abstractmethod
    def features(self, host: CLIPHost, images: Tensor, block: BlockParts | None = None) -> Tensor:
        """Computes the features of windows.

        Args:
            host: The host.
            images: (B, 3, h, w) windows.
            block: The host's last block on them, if it is open already.

        Returns:
            (B, E, gh, gw) features in the space of the text, not normalized.
        """

    @abstractmethod
    def settings(self) -> dict:
        """Returns the options that change the features, in the types of JSON."""

    def fingerprint(self) -> dict:
        return {'type': type(self).__name__, **self.settings()}


def attach(plugin: dict | Plugin | None, host: CLIPHost) -> Plugin | None:
    """Builds a plug-in and checks that it fits. Call it when the host is complete."""
    if plugin is None:
        return None
    plugin = plugin if isinstance(plugin, Plugin) else MODELS.build(plugin)
    if not isinstance(plugin, Plugin):
        raise TPAError(f'plugin must be a plug-in, e.g. FSA or ResCLIP, not {type(plugin).__name__}.')
    plugin.check(host)
    return plugin
