"""The networks that segment a user's pictures, built from the config that fits and the weights that are here."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from mmengine.config import Config, ConfigDict
from mmengine.dataset import Compose
from mmengine.device import get_device
from mmengine.registry import DefaultScope
from mmseg.registry import MODELS

from ..clip.names import BACKGROUND, ClassNames
from ..datasets import add_read_checks
from ..encoders import Encoder
from ..engine.config import use_host_alone
from ..errors import TPAError, user_message
from ..hosts import Host
from ..hosts.class_meta import meta_of_config, meta_of_names
from ..miniature.words import WORDS
from ..miniature.world import CLASSES, PALETTE
from ..segmentors import TPASegmentor
from ..visualization import distinct_colors
from ..weights.needs import needs
from .choice import Choice, Wish, choices, text_host
from .sizes import ShrinkLarge

_BACKGROUND_COLOR = (200, 200, 200)
# Long and short side of painted scenes, about. Their configs resize nothing.
_SCENE = (640, 160)


@dataclass(frozen=True)
class Networks:
    """What was built.

    Args:
        model: The host alone, or within a TPASegmentor.
        prepare: The pipeline after an image is read.
        class_names: One name per class.
        palette: RGB of each class.
        about: What they are, in words.
        note: Why they are not those that were looked for first.
    """

    model: TPASegmentor | Host
    prepare: Compose
    class_names: tuple[str, ...]
    palette: list[list[int]]
    about: str
    note: str = ''

    @property
    def host(self) -> Host:
        return self.model.host if self.with_tpa else self.model

    @property
    def encoder(self) -> Encoder | None:
        return self.model.encoder if self.with_tpa else None

    @property
    def with_tpa(self) -> bool:
        return isinstance(self.model, TPASegmentor)

    @property
    def refines(self) -> bool:
        """Whether the host needs its scores at the full size of a picture."""
        hosts = [self.host, getattr(self.host, 'host', None)]  # a layer around a host is a host too
        return any(getattr(host, 'pamr_steps', 0) or getattr(host, 'refinement', None) for host in hosts)


def load_networks(wish: Wish, encoder: Encoder | None = None) -> Networks:
    """Finds and builds what a user asks for.

    Args:
        wish: What that is.
        encoder: Of networks that are loaded already, where only the classes are new.
    """
    first, *others = choices(wish)
    try:
        return _build(first, wish, encoder)
    except TPAError as error:
        if not others or _has_weights(first.cfg):
            raise
        note = user_message(error)
    return _build(others[0], wish, encoder, note)


def _has_weights(cfg: Config) -> bool:
    return all(need.source.locate() for need in needs(cfg.model))


def _build(choice: Choice, wish: Wish, encoder: Encoder | None, note: str = '') -> Networks:
    cfg = copy.deepcopy(choice.cfg)
    host = text_host(cfg.model)
    shown = None if wish.classes is None else _set_classes(host, wish)
    if choice.miniature:
        _check_words(host.class_names, choice, note)
    if not wish.tpa:
        use_host_alone(cfg)
    elif encoder is not None:
        cfg.model.encoder = encoder
    # Whatever the caller's default scope is, data preprocessors and transforms are those of mmseg.
    with DefaultScope.overwrite_default_scope('mmseg'):
        model = MODELS.build(cfg.model)
        steps = [step for step in _pipeline(cfg, choice) if not step['type'].startswith('Load')]
        add_read_checks(steps)
        prepare = Compose([ShrinkLarge(_SCENE), *steps] if choice.miniature else steps)
    if not isinstance(model, TPASegmentor if wish.tpa else Host):
        wanted = 'a TPASegmentor' if wish.tpa else 'a host'
        raise TPAError(f'{choice.about} is not {wanted} but {type(model).__name__}: see docs/add_a_host.md.')
    if shown is not None:
        meta = meta_of_names(shown, _palette(shown, choice))
    else:
        numbered = [f'class {index}' for index in range(model.num_classes)]
        meta = meta_of_config(cfg, model.num_classes) or model.dataset_meta or meta_of_names(numbered)
    model.keep_meta(meta)
    model = model.to(wish.device or get_device()).eval()
    return Networks(model, prepare, tuple(meta['classes']), meta['palette'], choice.about, note)


def _pipeline(cfg: Config, choice: Choice) -> list[dict]:
    dataset = (cfg.get('test_dataloader') or {}).get('dataset') or {}
    pipeline = cfg.get('test_pipeline') or dataset.get('pipeline')
    if not pipeline:
        raise TPAError(f'{choice.about} has no test_pipeline: say in the config how pictures are prepared.')
    return pipeline


def _palette(shown: list[str], choice: Choice) -> list[tuple[int, int, int]]:
    """The background is gray; the things of the painted world have the colors they have there."""
    colors = [tuple(int(value) for value in color) for color in distinct_colors(len(shown))]
    known = {BACKGROUND: _BACKGROUND_COLOR}
    if choice.miniature:
        known |= {word: PALETTE[CLASSES.index(name)] for name, words in WORDS.items() for word in words}
    return [known.get(name.lower(), color) for name, color in zip(shown, colors, strict=True)]


def _check_words(names: list[list[str]], choice: Choice, note: str) -> None:
    """Raises TPAError where networks that know few words are asked for others."""
    known = {word for words in WORDS.values() for word in words}
    unknown = [name for synonyms in names for name in synonyms if name.lower() not in known]
    if unknown:
        raise TPAError(
            f'{choice.about} does not know {", ".join(map(repr, unknown))}: use the words of its painted world '
            f'({", ".join(WORDS)}), or real networks; {note or "name a backbone such as vit-b16."}'
        )


def _set_classes(host: ConfigDict, wish: Wish) -> list[str]:
    """Puts the classes into the config of a host. Returns the names to show."""
    if 'clip' not in host:
        raise TPAError(f'{host.type} has classes of its own: leave yours out, or choose a host that reads text.')
    names, has_background = ClassNames.read(wish.classes).split_background()
    shown = names.titles
    if not wish.background and not has_background:
        host.update(class_names=[list(synonyms) for synonyms in names.names], prob_thd=0.0)
    else:
        names = names.with_background(_background_words(host, wish))
        shown = [BACKGROUND, *shown]
        host.class_names = [list(synonyms) for synonyms in names.names]
    if wish.threshold is not None:
        if shown[0] != BACKGROUND:
            raise TPAError('A threshold sends unsure pixels to the background: ask for a background too.')
        host.prob_thd = wish.threshold
    host.pop('text_features', None)
    host.pop('query_to_class', None)
    return shown


def _background_words(host: ConfigDict, wish: Wish) -> str | Sequence[str]:
    """What the user says the background is, or what the host's authors did."""
    if wish.background and not isinstance(wish.background, bool):
        return wish.background
    names = ClassNames.read(host.class_names) if 'class_names' in host else None
    return list(names.names[0]) if names is not None and names.looks_like_background else [BACKGROUND]
