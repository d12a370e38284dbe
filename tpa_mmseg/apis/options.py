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

_CATALOG = catalog.load()
# Backbone, and the benchmarks whose settings serve for classes without and with a background.
_PAPER, _MINIATURE = (_CATALOG.suites[name].own_images for name in ('paper', 'miniature'))
#: The backbone that is used if none is named.
DEFAULT_BACKBONE: str = _PAPER['backbone']
#: Another name of the backbone that comes with the package.
MINIATURE = 'miniature'
# Hosts that need no settings of their own take those of another one for what is around them.
_BARE_HOSTS = {name: host for name, host in _CATALOG.hosts.items() if host.like}


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
    """Return the names of the hosts that come with the package."""
    rows = {one.row for one in _CATALOG.combinations('paper') if one.benchmark.name == _PAPER['plain']}
    return sorted({row.model for row in rows if row.backbone == DEFAULT_BACKBONE} | set(_BARE_HOSTS))


def text_host(model: ConfigDict) -> ConfigDict:
    """Return the config of the innermost host of a model, which is the one with class names."""
    while 'host' in model:
        model = model.host
    return model


def _shipped(host: str, backbone: str, background: bool) -> ResolvedConfig:
    if host not in host_names():
        raise TPAError(f'Unknown host {host!r}. Choose from: {", ".join(host_names())}; or pass a config file.')
    backbone = _MINIATURE['backbone'] if backbone == MINIATURE else backbone
    known = _CATALOG.backbones.get(backbone)
    if known is not None and known.suite == 'miniature':
        return _miniature(host, backbone, background)
    bare = _BARE_HOSTS.get(host)
    cfg = _config(bare.like if bare else host, backbone, _PAPER['background' if background else 'plain'])
    if bare:
        kept = {key: cfg.model.host[key] for key in ('clip', 'class_names', 'prob_thd') if key in cfg.model.host}
        cfg.model.host = ConfigDict(type=bare.type, **kept)
    # SCLIP strikes out what covers little of a VOC image; a user may be looking for small things.
    text_host(cfg.model).pop('area_thd', None)
    return ResolvedConfig(cfg, f'{host} with CLIP {backbone}')


def _miniature(host: str, backbone: str, background: bool) -> ResolvedConfig:
    cfg = _config(host, backbone, _MINIATURE['plain'])
    if background:
        example = _config('sclip', _MINIATURE['backbone'], _MINIATURE['background']).model.host
        text_host(cfg.model).update(class_names=example.class_names, prob_thd=example.prob_thd)
    return ResolvedConfig(cfg, f'{host} with the miniature CLIP {backbone}')


def _config(host: str, backbone: str, benchmark: str) -> Config:
    row = Row.of(f'{host}_{backbone}')
    if _CATALOG.find(row, benchmark) is None:
        known = dict.fromkeys(one.row.backbone for one in _CATALOG.combinations() if one.row.model == host)
        raise TPAError(
            f'{host} has no settings for the backbone {backbone!r}: choose {", ".join(known)}, or another host.'
        )
    return _read(_CATALOG.config(row, benchmark))


def _read(path: Path) -> Config:
    if not path.is_file():
        raise TPAError(f'Config not found: {path}. Check the path.')
    try:
        return Config.fromfile(path)
    except (KeyError, TypeError, NameError, SyntaxError, FileNotFoundError) as error:
        raise TPAError(f'Cannot read the config {path} ({user_message(error)}).') from error
