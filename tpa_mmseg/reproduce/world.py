"""A world: the hosts, benchmarks and encoders that experiments are about, and where their configs are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config

from .runs import Run

#: In a checkout a link to ``configs/``, in an installed package a folder.
CONFIGS = (Path(__file__).parent.parent / '.mim' / 'configs').resolve()


@dataclass(frozen=True)
class World:
    """What the experiments of the paper are about, in one world.

    Args:
        name: Key in :data:`~tpa_mmseg.reproduce.worlds.WORLDS`.
        hosts: Host -> its name for people.
        backbones: Backbone -> its name.
        benchmarks: Benchmark -> its name, in the order of the tables.
        images: Benchmark -> number of test images, for estimates.
        rows: Host and backbone of each row of the main table.
        proxies: Encoders inside ProxyCLIP in the experiment ``vfm`` -> name.
        proxy_backbones: The backbones of that experiment.
        encoders: Encoders of the bank -> config, for the experiment ``extractor``.
        encoder_names: The same -> name.
        ablation_host: Host and backbone of ``components``, ``k`` and ``extractor``.
        ablation_benchmarks: Benchmarks of ``components`` and ``k``.
        growth_host: Host and backbone of ``bank-size`` and ``repetition``.
        compositions: Host, backbone, protocol and plug-in of ``composition``.
        cost_rows: Host and backbone of ``cost``.
        config: The config file of a run.
        has: Whether the world has a run that an experiment asks for.
        adjust: Changes the config of a run that has no file of its own.
        seconds_per_image: A guess, for estimates before anything was measured; None where there is none.
    """

    name: str
    hosts: Mapping[str, str]
    backbones: Mapping[str, str]
    benchmarks: Mapping[str, str]
    images: Mapping[str, int]
    rows: tuple[tuple[str, str], ...]
    proxies: Mapping[str, str]
    proxy_backbones: tuple[str, ...]
    encoders: Mapping[str, dict]
    encoder_names: Mapping[str, str]
    ablation_host: tuple[str, str]
    ablation_benchmarks: tuple[str, ...]
    growth_host: tuple[str, str]
    compositions: tuple[tuple[str, str, str, str | None], ...]
    cost_rows: tuple[tuple[str, str], ...]
    config: Callable[[Run], Path]
    has: Callable[[Run], bool] = lambda run: True
    adjust: Callable[[Run, Config], None] = lambda run, cfg: None
    seconds_per_image: float | None = None
