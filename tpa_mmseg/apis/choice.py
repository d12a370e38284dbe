"""Which config serves a user: the settings of a published host, with classes of one's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config, ConfigDict

from ..clip.names import Classes, ClassNames
from ..errors import TPAError, user_message

#: The configs, in a checkout and in an installed package.
CONFIGS = Path(__file__).parents[1] / '.mim' / 'configs'
#: The backbone that comes with the package.
MINIATURE = 'mini-b8'
_MINIATURES = 'mini-'
#: The backbone that is looked for first.
REAL = 'vit-b16'
AUTO = 'auto'

# The benchmarks whose settings serve for classes without and with a background.
_PLAIN, _WITH_BACKGROUND = 'context59', 'voc21'
# Hosts that need no settings of their own take those of SCLIP for what is around them.
_BARE_HOSTS = {'clip': 'CLIP', 'maskclip': 'MaskCLIP', 'gem': 'GEM'}


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
    shipped = {path.name.partition('_')[0] for path in CONFIGS.glob(f'*/*_{REAL}_{_PLAIN}.py')}
    return sorted(shipped | set(_BARE_HOSTS))


def _shipped(host: str, backbone: str, background: bool) -> Choice:
    if host not in host_names():
        raise TPAError(f'There is no host {host!r}: choose one of {", ".join(host_names())}, or give a config file.')
    if backbone.startswith(_MINIATURES):
        return _miniature(host, backbone, background)
    settings = 'sclip' if host in _BARE_HOSTS else host
    file = f'{settings}_{backbone}_{_WITH_BACKGROUND if background else _PLAIN}.py'
    cfg = _read(_existing(CONFIGS / settings.partition('-')[0] / file, host, backbone))
    if host in _BARE_HOSTS:
        kept = {key: cfg.model.host[key] for key in ('clip', 'class_names', 'prob_thd') if key in cfg.model.host}
        cfg.model.host = ConfigDict(type=_BARE_HOSTS[host], **kept)
    # SCLIP strikes out what covers little of a VOC image; a user may be looking for small things.
    text_host(cfg.model).pop('area_thd', None)
    return Choice(cfg, f'{host} with CLIP {backbone}')


def _miniature(host: str, backbone: str, background: bool) -> Choice:
    folder = CONFIGS / 'miniature'
    cfg = _read(_existing(folder / f'{host}_{backbone}.py', host, backbone))
    if background:
        example = _read(folder / f'sclip_{MINIATURE}_background.py').model.host
        text_host(cfg.model).update(class_names=example.class_names, prob_thd=example.prob_thd)
    return Choice(cfg, f"{host} with the miniature world's networks ({backbone})", miniature=True)


def _existing(path: Path, host: str, backbone: str) -> Path:
    if not path.is_file():
        raise TPAError(
            f'{host} has no settings for the backbone {backbone!r}: choose vit-b16, vit-l14 or {MINIATURE}, '
            'or another host.'
        )
    return path


def _read(path: Path) -> Config:
    if not path.is_file():
        raise TPAError(f'There is no config file {path}.')
    try:
        return Config.fromfile(path)
    except (KeyError, TypeError, NameError, SyntaxError, FileNotFoundError) as error:
        raise TPAError(f'The config {path} cannot be read ({user_message(error)}).') from error
