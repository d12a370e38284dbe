"""A run: one pass of one host over one benchmark, in which all variants of an experiment are scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Variant:
    """A setting of TPA: what differs from the config, in the config's own words.

    Args:
        key: Short name, unique in its experiment.
        title: What tables call it.
        anchors: Changes to ``model.anchors``.
        fusion: Changes to ``model.fusion``.
        bank_scope: ``model.bank_scope``.
        encoder: The bank's encoder: a key of the world's encoders, ``'clip'`` for the patches of the host's own CLIP,
            or None for the config's.
        fraction: Share of the config's pool, drawn with the same seed (so that smaller pools are part of larger ones).
        pool: Name of a pool that the experiment makes itself.
        value: What an axis of a plot shows, where the variant is a point on one.
    """

    key: str
    title: str
    anchors: Mapping = field(default_factory=dict, hash=False)
    fusion: Mapping = field(default_factory=dict, hash=False)
    bank_scope: str = 'pool'
    encoder: str | None = None
    fraction: float = 1.0
    pool: str | None = None
    value: float | None = None


FULL = Variant('full', 'TPA')


@dataclass(frozen=True)
class Run:
    """One folder of results.

    Args:
        experiment: Name of the experiment.
        world: Name of the world.
        host: Such as ``'naclip'``.
        backbone: Such as ``'vit-b16'``.
        benchmark: Such as ``'voc21'``.
        proxy: The encoder inside ProxyCLIP where it is not the usual one.
        protocol: ``'mlmp_224'`` where images are tested at that size.
        plugin: ``'fsa'`` or ``'mlmp'`` inside the host.
        variants: What is scored beside the host.
    """

    experiment: str
    world: str
    host: str
    backbone: str
    benchmark: str
    proxy: str | None = None
    protocol: str | None = None
    plugin: str | None = None
    variants: tuple[Variant, ...] = (FULL,)

    @property
    def name(self) -> str:
        """Name of the run's folder, unique in its experiment."""
        return f'{self.stem}_{self.backbone}_{self.benchmark}'

    @property
    def stem(self) -> str:
        """The host with what changes it, as in the names of configs."""
        protocol = '224' if self.protocol == 'mlmp_224' else None
        return '-'.join(part for part in (self.host, self.proxy, protocol, self.plugin) if part)
