"""Loading a model for a user's classes: the settings of a published host, or the user's own config."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from mmengine.config import Config, ConfigDict
from mmengine.dataset import Compose
from mmengine.device import get_device
from mmengine.registry import DefaultScope
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from .. import catalog
from ..catalog import Row
from ..clip.names import BACKGROUND, Classes, ClassNames
from ..core import ENCODER, Evidence
from ..datasets import SafeResize, add_read_checks
from ..datasets.palette import distinct_colors
from ..encoders import Encoder, PixelNormalization
from ..engine.config import use_host_alone
from ..errors import TPAError, user_message
from ..hosts import Host
from ..hosts.class_meta import meta_of_config, meta_of_names, stated_meta
from ..segmentors import TPASegmentor, gather_evidence
from ..weights.needs import needs
from .images import ImageSource

# The suite whose hosts have names, and whose backbones are real ones.
_PAPER = 'paper'
#: The backbone that is used if none is named.
DEFAULT_BACKBONE = catalog.shipped().suites[_PAPER].own_images['backbone']

_BACKGROUND_COLOR = (200, 200, 200)
# Hosts that refine masks hold all their scores at the size of the image: 8 MB per class for that many pixels.
_MOST_REFINED_PIXELS = 2_000_000


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


@dataclass(frozen=True, eq=False)
class ImageEvidence(Evidence):
    """Evidence of a user's image. Args: size: Height and width of the image; those of the scores may be less."""

    size: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class LoadedModel:
    """A model that is ready for a user's images.

    Args:
        model: The host alone, or inside a TPASegmentor.
        pipeline: The test pipeline after an image is read.
        classes: One name per class.
        palette: RGB of each class.
        description: What it is, in a few words.
    """

    model: TPASegmentor | Host
    pipeline: Compose
    classes: tuple[str, ...]
    palette: list[list[int]]
    description: str

    @property
    def host(self) -> Host:
        return self.model.host if isinstance(self.model, TPASegmentor) else self.model

    @property
    def encoder(self) -> Encoder | None:
        """The encoder of TPA; None for the host alone."""
        return self.model.encoder if isinstance(self.model, TPASegmentor) else None

    @property
    def refines(self) -> bool:
        """Whether the host needs its scores at the full size of an image."""
        hosts = [self.host, getattr(self.host, 'host', None)]  # a wrapper of a host is a host too
        return any(getattr(host, 'pamr_steps', 0) or getattr(host, 'refinement', None) for host in hosts)

    @torch.no_grad()
    def look(self, image: ImageSource) -> ImageEvidence:
        """Gather the evidence of an image: one pass of the host and one of the encoder."""
        packed = self.pipeline(image.load())
        size = tuple(packed['data_samples'].ori_shape)
        if self.refines:
            _limit_scores(packed['data_samples'])
        data = self.model.data_preprocessor({name: [value] for name, value in packed.items()}, False)
        encoders = {} if self.encoder is None else {ENCODER: self.encoder}
        normalization = PixelNormalization.of(self.model.data_preprocessor)
        (found,) = gather_evidence(self.host, encoders, normalization, data['inputs'], data['data_samples'])
        return ImageEvidence(found.scores, found.features, image.path or image.key, size)


def load_model(options: SegmenterOptions, encoder: Encoder | None = None) -> LoadedModel:
    """Build the model that a user asks for.

    Args:
        options: The options.
        encoder: An encoder that is loaded already, if only the classes are new.
    """
    resolved = resolve_config(options)
    cfg = copy.deepcopy(resolved.cfg)
    names = None if options.classes is None else _set_classes(text_host(cfg.model), options)
    if not options.tpa:
        use_host_alone(cfg)
    elif encoder is not None:
        cfg.model.encoder = encoder
    # Whatever the caller's default scope is, data preprocessors and transforms are those of mmseg.
    with DefaultScope.overwrite_default_scope('mmseg'):
        pipeline, model = _pipeline(cfg), _build(cfg)
    if not isinstance(model, TPASegmentor if options.tpa else Host):
        expected = 'a TPASegmentor' if options.tpa else 'a host'
        raise TPAError(
            f'The model of {resolved.description} is a {type(model).__name__}, not {expected}: see docs/add_a_host.md.'
        )
    meta = _meta(cfg, model) if names is None else meta_of_names(names, _palette(names, cfg))
    model.keep_meta(meta)
    model = model.to(options.device or get_device()).eval()
    return LoadedModel(model, pipeline, tuple(meta['classes']), meta['palette'], resolved.description)


def _build(cfg: Config) -> TPASegmentor | Host:
    try:
        return MODELS.build(cfg.model)
    except TPAError as error:
        if cfg.filename is None or all(need.source.locate() for need in needs(cfg.model)):
            raise
        raise TPAError(
            f'{user_message(error)} To download all weights of this model: tpa weights download {cfg.filename}'
        ) from error


def _pipeline(cfg: Config) -> Compose:
    """Return the test pipeline without the steps that read files."""
    dataset = (cfg.get('test_dataloader') or {}).get('dataset') or {}
    steps = cfg.get('test_pipeline') or dataset.get('pipeline')
    if not steps:
        raise TPAError(f'No test_pipeline in {cfg.filename or "the config"}: add the steps that prepare an image.')
    steps = [step for step in steps if not step['type'].startswith('Load')]
    add_read_checks(steps)
    largest = cfg.get('largest_image')
    return Compose([ShrinkLarge(largest), *steps] if largest else steps)


def _meta(cfg: Config, model: TPASegmentor | Host) -> dict:
    """Return names and colors of the classes that a config brings."""
    numbered = [f'class {index}' for index in range(model.num_classes)]
    return meta_of_config(cfg, model.num_classes) or model.dataset_meta or meta_of_names(numbered)


# Configs


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


# Classes


def _set_classes(host: ConfigDict, options: SegmenterOptions) -> list[str]:
    """Put the classes into the config of a host. Returns the names to show."""
    if 'clip' not in host:
        raise TPAError(f'{host.type} has fixed classes: leave out classes, or choose a host with a text encoder.')
    names, has_background = ClassNames.read(options.classes).split_background()
    shown = names.titles
    if not options.background and not has_background:
        host.update(class_names=[list(synonyms) for synonyms in names.names], prob_thd=0.0)
    else:
        names = names.with_background(_background_words(host, options))
        shown = [BACKGROUND, *shown]
        host.class_names = [list(synonyms) for synonyms in names.names]
    if options.threshold is not None:
        if shown[0] != BACKGROUND:
            raise TPAError('threshold needs a background for the uncertain pixels: pass background=True as well.')
        host.prob_thd = options.threshold
    host.pop('text_features', None)
    host.pop('query_to_class', None)
    return shown


def _background_words(host: ConfigDict, options: SegmenterOptions) -> str | Sequence[str]:
    """Return the words of the background: the user's, or those of the host's authors."""
    if options.background and not isinstance(options.background, bool):
        return options.background
    names = ClassNames.read(host.class_names) if 'class_names' in host else None
    return list(names.names[0]) if names is not None and names.looks_like_background else [BACKGROUND]


def _palette(names: list[str], cfg: Config) -> list[Sequence[int]]:
    """Return the colors of the config's dataset if it has all classes, otherwise distinct ones. Background is gray."""
    meta = stated_meta((cfg.get('test_dataloader') or {}).get('dataset') or {})
    known = dict(zip(meta.get('classes') or (), meta.get('palette') or (), strict=False)) | {BACKGROUND: None}
    colors = [known.get(name.lower()) for name in names]
    if not all(name.lower() in known for name in names):
        colors = distinct_colors(len(names)).tolist()
    return [_BACKGROUND_COLOR if name == BACKGROUND else color for name, color in zip(names, colors, strict=True)]


# Sizes


class ShrinkLarge:
    """A pipeline step that shrinks images larger than a size and leaves the others as they are.

    Args:
        largest: Long and short side.
    """

    def __init__(self, largest: tuple[int, int]) -> None:
        self.largest = largest
        self._resize = SafeResize(scale=tuple(largest), keep_ratio=True)

    def __call__(self, results: dict) -> dict:
        long, short = self.largest
        height, width = results['img'].shape[:2]
        fits = max(height, width) <= long and min(height, width) <= short
        return results if fits else self._resize(results)


def _limit_scores(sample: SegDataSample) -> None:
    """Let a host that refines masks do so at a size that fits into memory."""
    height, width = sample.ori_shape
    factor = (_MOST_REFINED_PIXELS / (height * width)) ** 0.5
    if factor < 1:
        size = tuple(max(1, round(side * factor)) for side in (height, width))
        # SAM would read the file again and find that it has another size.
        sample.set_metainfo({'ori_shape': size, 'img_path': None})
