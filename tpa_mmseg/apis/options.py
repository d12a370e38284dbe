"""The model that a user asks for: the settings of a host of the catalog, or the user's own config."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config, ConfigDict

from .. import catalog
from ..catalog import Row
from ..clip.names import Classes, ClassNames
from ..errors import TPAError, user_message

# The suite whose hosts have names, and whose backbones are real ones.
_PAPER = 'paper'
#: The backbone that is used if none is named.
DEFAULT_BACKBONE: str = catalog.shipped().suites[_PAPER].own_images['backbone']


@dataclass(frozen=True)
class SegmenterOptions:
    """The model that a user asks for. Args: As for :class:`~tpa_mmseg.apis.Segmenter`."""

    classes: Classes | None = None
    host: str | os.PathLike | Config = 'sclip'
    backbone: str = DEFAULT_BACKBONE
    background: bool | str | Sequence[str] = False
    threshold: float | None = None
    tpa: bool = True
    device: str | None = None

    @property
    def has_background(self) -> bool:
        return bool(self.background) or (
            self.classes is not None and ClassNames.read(self.classes).split_background()[1]
        )


@dataclass(frozen=True)
class ResolvedConfig:
    """The config behind the options. Args: cfg: The config; description: What it is, in a few words."""

    cfg: Config
    description: str


def resolve_config(options: SegmenterOptions) -> ResolvedConfig:
    """Find the config for the options: the user's own, or that of a shipped host and backbone."""
    host = options.host
    if isinstance(host, Config):
        return ResolvedConfig(host, Path(host.filename).stem if host.filename else 'a config')
    if isinstance(host, os.PathLike) or host.endswith('.py'):
        return ResolvedConfig(_read(Path(host)), Path(host).stem)
    if options.classes is None:
        raise TPAError("No classes: name some, e.g. ['cat', 'sofa', 'tv; television'].")
    return _shipped(host.lower(), options.backbone, options.has_background)


def host_names() -> list[str]:
    """Return the names of the hosts with settings for user-defined classes."""
    known = catalog.load()
    plan = known.suites[_PAPER].own_images
    rows = [each.row for each in known.combinations(_PAPER) if each.benchmark.name == plan['plain']]
    models = {row.model for row in rows if row.backbone == plan['backbone']}
    return sorted(models | {name for name, host in known.hosts.items() if host.like})


def text_host(model: ConfigDict) -> ConfigDict:
    """Return the config of the innermost host of a model, which is the one with class names."""
    while 'host' in model:
        model = model.host
    return model


def _shipped(model: str, backbone: str, background: bool) -> ResolvedConfig:
    """Return the config of a host of the catalog. Args: model: Host with its variant, e.g. ``'proxyclip-mae'``."""
    known = catalog.load()
    if model not in host_names():
        raise TPAError(f'Unknown host {model!r}. Choose from: {", ".join(host_names())}; or pass a config file.')
    if backbone in known.suites:
        backbone = known.suites[backbone].own_images['backbone']
    if backbone not in known.backbones:
        raise TPAError(f'Unknown backbone {backbone!r}. Choose from: {", ".join(known.backbones)}.')
    suite = known.backbones[backbone].suite
    cfg = _settings(Row.of(f'{model}_{backbone}'), suite, background)
    # SCLIP strikes out what covers little of a VOC image; a user may be looking for small things.
    text_host(cfg.model).pop('area_thd', None)
    return ResolvedConfig(cfg, f'{model} with {"" if suite == _PAPER else f"the {suite} "}CLIP {backbone}')


def _settings(row: Row, suite: str, background: bool) -> Config:
    """Return the config of a row on the benchmark of its suite that serves for user-defined classes."""
    known = catalog.load()
    plan, host = known.suites[suite].own_images, known.hosts[row.host]
    if background and known.find(row, plan['background']):
        return _read(known.config(row, plan['background']))
    if known.find(row, plan['plain']):
        cfg = _read(known.config(row, plan['plain']))
        if background:
            example = next(each for each in known.combinations(suite) if each.benchmark.name == plan['background'])
            inner = text_host(_read(known.config(example.row, plan['background'])).model)
            text_host(cfg.model).update(class_names=inner.class_names, prob_thd=inner.prob_thd)
        return cfg
    if not host.like or row.variant or suite != _PAPER:
        there = dict.fromkeys(each.row.backbone for each in known.combinations() if each.row.model == row.model)
        raise TPAError(
            f'No settings for {row.model} with the backbone {row.backbone!r}. Choose from: {", ".join(there)}; or '
            'another host.'
        )
    # A host without settings of its own takes those of another one for everything around it.
    cfg = _settings(row._replace(host=host.like), suite, background)
    kept = {key: cfg.model.host[key] for key in ('clip', 'class_names', 'prob_thd') if key in cfg.model.host}
    cfg.model.host = ConfigDict(type=host.type, **kept)
    return cfg


def _read(path: Path) -> Config:
    if not path.is_file():
        raise TPAError(f'Config not found: {path}. Check the path.')
    try:
        return Config.fromfile(path)
    except (KeyError, TypeError, NameError, SyntaxError, FileNotFoundError) as error:
        raise TPAError(f'Cannot read the config {path} ({user_message(error)}).') from error
