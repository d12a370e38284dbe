"""The networks that segment a user's pictures, built from the config that fits and the weights that are here."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass

from mmengine.config import Config, ConfigDict
from mmengine.dataset import Compose
from mmengine.device import get_device
from mmengine.registry import DefaultScope
from mmseg.registry import MODELS

from ..datasets import SafeResize, harden_pipeline
from ..encoders import Encoder
from ..engine.launch import use_host_alone
from ..errors import TPAError, sentence
from ..hosts import Host
from ..hosts.class_meta import meta_of_config, meta_of_names
from ..hosts.class_names import ClassNames
from ..segmentors import TPASegmentor
from ..weights_needs import needs
from .choice import Choice, Wish, choices
from .class_list import BACKGROUND, read_classes, split_background, with_background


@dataclass(frozen=True)
class Networks:
    """What was built.

    Args:
        model: The host alone, or within a TPASegmentor.
        prepare: The pipeline after an image is read.
        class_names: One name per class.
        palette: RGB of each class.
        about: One line about them.
    """

    model: TPASegmentor | Host
    prepare: Compose
    class_names: tuple[str, ...]
    palette: list[list[int]]
    about: str

    @property
    def host(self) -> Host:
        return self.model.host if self.with_tpa else self.model

    @property
    def encoder(self) -> Encoder | None:
        return self.model.encoder if self.with_tpa else None

    @property
    def with_tpa(self) -> bool:
        return isinstance(self.model, TPASegmentor)


class ShrinkLarge:
    """A pipeline step that shrinks what is larger than a size and leaves the rest as it is.

    Args:
        largest: Long and short side.
    """

    def __init__(self, largest: tuple[int, int]) -> None:
        self.largest = largest
        self._resize = SafeResize(scale=largest, keep_ratio=True)

    def __call__(self, results: dict) -> dict:
        long, short = self.largest
        height, width = results['img'].shape[:2]
        fits = max(height, width) <= long and min(height, width) <= short
        return results if fits else self._resize(results)


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
        missing = sentence(error)
    found = _build(others[0], wish, encoder)
    return Networks(**{**vars(found), 'about': f'{found.about}, because of {first.about} this is missing: {missing}'})


def _has_weights(cfg: Config) -> bool:
    return all(weights.locate() for _, weights in needs(cfg.model))


def _build(choice: Choice, wish: Wish, encoder: Encoder | None) -> Networks:
    cfg = copy.deepcopy(choice.cfg)
    shown = None if wish.classes is None else _set_classes(cfg.model.get('host', cfg.model), wish)
    if not wish.tpa:
        use_host_alone(cfg)
    elif encoder is not None:
        cfg.model.encoder = encoder
    # Whatever the caller's default scope is, data preprocessors and transforms are those of mmseg.
    with DefaultScope.overwrite_default_scope('mmseg'):
        model = MODELS.build(cfg.model)
        steps = [step for step in cfg.test_pipeline if not step['type'].startswith('Load')]
        harden_pipeline(steps)
        prepare = Compose(steps if choice.largest is None else [ShrinkLarge(choice.largest), *steps])
    if shown is not None:
        meta = meta_of_names(shown)
    else:
        numbered = [f'class {index}' for index in range(model.num_classes)]
        meta = meta_of_config(cfg, model.num_classes) or model.dataset_meta or meta_of_names(numbered)
    model.keep_meta(meta)
    model = model.to(wish.device or get_device()).eval()
    return Networks(model, prepare, tuple(meta['classes']), meta['palette'], choice.about)


def _set_classes(host: ConfigDict, wish: Wish) -> list[str]:
    """Puts the classes into the config of a host. Returns the names to show."""
    if 'clip' not in host:
        raise TPAError(f'{host.type} has classes of its own: leave yours out, or choose a host that reads text.')
    names, has_background = split_background(read_classes(wish.classes))
    shown = [synonyms[0] for synonyms in names.names]
    if not wish.background and not has_background:
        host.update(class_names=[list(synonyms) for synonyms in names.names], prob_thd=0.0)
    else:
        words = _background_words(host, wish)
        names = with_background(names, words)
        shown = [BACKGROUND, *shown]
        host.class_names = [list(synonyms) for synonyms in names.names]
    if wish.threshold is not None:
        if shown[0] != BACKGROUND:
            raise TPAError('A threshold sends unsure pixels to the background: ask for a background too.')
        host.prob_thd = wish.threshold
    host.pop('text_features', None)
    host.pop('query_to_class', None)
    return shown


def _background_words(host: ConfigDict, wish: Wish) -> list[str]:
    """What the user says the background is, or what the host's authors did."""
    if isinstance(wish.background, str):
        return [word.strip() for word in re.split('[;,]', wish.background) if word.strip()]
    if wish.background and not isinstance(wish.background, bool):
        return list(wish.background)
    names = ClassNames.read(host.class_names) if 'class_names' in host else None
    return list(names.names[0]) if names is not None and names.looks_like_background else [BACKGROUND]
