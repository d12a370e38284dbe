"""Which config serves a user: the settings of a published host, with classes of one's own."""

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
_PAPER, _PAINTED = (_CATALOG.suites[name].own_images for name in ('paper', 'miniature'))
#: The backbone that is looked for first, and the one that comes with the package.
REAL, MINIATURE = _PAPER['backbone'], _PAINTED['backbone']
AUTO = 'auto'
# Hosts that need no settings of their own take those of another one for what is around them.
_BARE_HOSTS = {name: host for name, host in _CATALOG.hosts.items() if host.like}


@dataclass(frozen=True)
class Wish:
    """What a user asks for.

    Args:
        classes: See :meth:`~tpa_mmseg.clip.names.ClassNames.read`; None for those of a config of one's own.
        host: Name of a host, such as ``'sclip'`` or ``'proxyclip-mae'``; or a config, or its file.
        backbone: ``'vit-b16'``, ``'vit-l14'``, ``'vit-h14'``; ``'mini-b8'``, which comes with the package; or
            ``'auto'``: ViT-B/16 where its weights are here or can be downloaded, the miniature elsewhere.
        background: True, or words that describe it, for a class 0 to which unsure pixels go.
        threshold: Pixels whose best class is less probable go to the background; by default as the host has it.
        tpa: False leaves the encoder out.
        device: Such as ``'cuda:1'``; by default the best there is.
    """

    classes: Classes | None = None
    host: str | os.PathLike | Config = 'sclip'
    backbone: str = AUTO
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
class Choice:
    """A config that fits.

    Args:
        cfg: The config.
        about: What it is, in words.
        miniature: Whether its networks are those of the miniature world, which know few words and small pictures.
    """

    cfg: Config
    about: str
    miniature: bool = False


def choices(wish: Wish) -> list[Choice]:
    """The configs to try, the best first."""
    if isinstance(wish.host, Config):
        return [Choice(wish.host, Path(wish.host.filename).stem if wish.host.filename else 'a config')]
    if isinstance(wish.host, os.PathLike) or wish.host.endswith('.py'):
        return [Choice(_read(Path(wish.host)), Path(wish.host).stem)]
    if wish.classes is None:
        raise TPAError("There are no classes: give some, such as ['cat', 'sofa', 'wall'].")
    backbones = (REAL, MINIATURE) if wish.backbone == AUTO else (wish.backbone,)
    return [_shipped(wish.host.lower(), backbone, wish.has_background) for backbone in backbones]


def text_host(model: ConfigDict) -> ConfigDict:
    """The config of the innermost host of a model, which is the one that reads class names."""
    while 'host' in model:
        model = model.host
    return model


def host_names() -> list[str]:
    """The hosts that a user may name."""
    rows = {one.row for one in _CATALOG.combinations('paper') if one.benchmark.name == _PAPER['plain']}
    return sorted({row.model for row in rows if row.backbone == REAL} | set(_BARE_HOSTS))


def _shipped(host: str, backbone: str, background: bool) -> Choice:
    if host not in host_names():
        raise TPAError(f'There is no host {host!r}: choose one of {", ".join(host_names())}, or give a config file.')
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
    return Choice(cfg, f'{host} with CLIP {backbone}')


def _miniature(host: str, backbone: str, background: bool) -> Choice:
    cfg = _config(host, backbone, _PAINTED['plain'])
    if background:
        example = _config('sclip', MINIATURE, _PAINTED['background']).model.host
        text_host(cfg.model).update(class_names=example.class_names, prob_thd=example.prob_thd)
    return Choice(cfg, f"{host} with the miniature world's networks ({backbone})", miniature=True)


def _config(host: str, backbone: str, benchmark: str) -> Config:
    row = Row.of(f'{host}_{backbone}')
    if _CATALOG.find(row, benchmark) is None:
        there = dict.fromkeys(one.row.backbone for one in _CATALOG.combinations() if one.row.model == host)
        raise TPAError(
            f'{host} has no settings for the backbone {backbone!r}: choose {", ".join(there)}, or another host.'
        )
    return _read(_CATALOG.config(row, benchmark))


def _read(path: Path) -> Config:
    if not path.is_file():
        raise TPAError(f'There is no config file {path}.')
    try:
        return Config.fromfile(path)
    except (KeyError, TypeError, NameError, SyntaxError, FileNotFoundError) as error:
        raise TPAError(f'The config {path} cannot be read ({user_message(error)}).') from error
