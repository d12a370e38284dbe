"""Loading a model for a user's classes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from mmengine.config import Config, ConfigDict
from mmengine.dataset import Compose
from mmengine.device import get_device
from mmengine.registry import DefaultScope
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from ..clip.names import BACKGROUND, ClassNames
from ..core import ENCODER, Evidence
from ..core.given import given
from ..datasets import SafeResize, add_read_checks
from ..datasets.palette import BACKGROUND_COLOR, distinct_colors
from ..encoders import Encoder, PixelNormalization
from ..engine.config import use_host_alone
from ..engine.config_check import check_model
from ..errors import TPAError, user_message
from ..hosts import Host
from ..hosts.class_meta import meta_of_config, meta_of_names, stated_meta
from ..segmentors import TPASegmentor, gather_evidence
from ..weights.needs import needs
from .images import ImageSource
from .options import SegmenterOptions, resolve_config, text_host

# Hosts that refine masks hold all their scores at the size of the image: 8 MB per class for that many pixels.
_MOST_REFINED_PIXELS = 2_000_000


@dataclass(frozen=True, eq=False)
class ImageEvidence(Evidence):
    """Evidence of a user's image. Args: size: Height and width of the image; those of the scores may be less."""

    size: tuple[int, int] = (0, 0)


class PreparedImage(NamedTuple):
    """An image that is ready for the networks."""

    image: ImageSource  #: the image
    packed: dict  #: what the pipeline made of it
    size: tuple[int, int]  #: its height and width


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

    def prepare(self, image: ImageSource) -> PreparedImage:
        """Read an image and run the pipeline on it, which needs no network: other threads may do it."""
        packed = self.pipeline(image.load())
        size = tuple(packed['data_samples'].ori_shape)
        if self.refines:
            _limit_scores(packed['data_samples'])
        return PreparedImage(image, packed, size)

    @torch.no_grad()
    def look(self, images: Sequence[PreparedImage]) -> list[ImageEvidence]:
        """Gather the evidence of images: one pass of the host and one of the encoder, together as far as they can."""
        # One by one, because a stock data preprocessor rejects images of different sizes.
        batches = [
            self.model.data_preprocessor({name: [value] for name, value in each.packed.items()}, False)
            for each in images
        ]
        inputs: list[torch.Tensor] | torch.Tensor = [image for data in batches for image in data['inputs']]
        samples = [sample for data in batches for sample in data['data_samples']]
        if len({image.shape for image in inputs}) == 1:
            inputs = torch.stack(tuple(inputs))
        encoders = {} if self.encoder is None else {ENCODER: self.encoder}
        normalization = PixelNormalization.of(self.model.data_preprocessor)
        gathered = gather_evidence(self.host, encoders, normalization, inputs, samples)
        return [
            ImageEvidence(found.scores, found.features, each.image.path or each.image.key, each.size)
            for each, found in zip(images, gathered, strict=True)
        ]


def load_model(options: SegmenterOptions, loaded: LoadedModel | None = None) -> LoadedModel:
    """Build the model that a user asks for.

    Args:
        options: The options.
        loaded: The same model with other classes, to share its networks.
    """
    device = _device(options.device)
    resolved = resolve_config(options)
    cfg = copy.deepcopy(resolved.cfg)
    check_model(cfg.model)
    names = None
    if options.classes is not None:
        names = _set_classes(text_host(cfg.model), ClassNames.read(options.classes), options)
    if not options.tpa:
        use_host_alone(cfg)
    elif loaded is not None:
        cfg.model.encoder = loaded.encoder
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
    model = model.to(device).eval()
    if loaded is not None:
        _share_parameters(model, loaded.model)
    meta = meta_of_names(meta['classes'], meta['palette'])
    return LoadedModel(model, pipeline, meta['classes'], meta['palette'], resolved.description)


def _device(name: str | None) -> torch.device:
    """Returns the device, before anything is loaded for it. Raises TPAError if it is not there."""
    try:
        device = torch.device(name or get_device())
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise TPAError(f'The device {name!r} cannot be used ({reason}): use another one, e.g. cpu.') from error
    return device


def _build(cfg: Config) -> TPASegmentor | Host:
    try:
        return MODELS.build(cfg.model)
    except TPAError as error:
        if cfg.filename is None or all(need.source.locate() for need in needs(cfg.model)):
            raise
        raise TPAError(
            f'{user_message(error)} To download all weights of this model: tpa weights download {cfg.filename}'
        ) from error


def _share_parameters(model: TPASegmentor | Host, other: TPASegmentor | Host) -> None:
    """Let a model use the parameters of another one that was built from the same files, so that there is one copy."""
    theirs = dict(other.named_parameters())
    for name, parameter in model.named_parameters():
        if name in theirs and theirs[name].shape == parameter.shape:
            parameter.data = theirs[name].data


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
    """Return names and colors of the classes of a config."""
    numbered = [f'class {index}' for index in range(given(model.num_classes))]
    return meta_of_config(cfg, model.num_classes) or model.dataset_meta or meta_of_names(numbered)


def _set_classes(host: ConfigDict, classes: ClassNames, options: SegmenterOptions) -> list[str]:
    """Put the classes into the config of a host. Returns the names to show."""
    if 'clip' not in host:
        raise TPAError(f'{host.type} has fixed classes: leave out classes, or choose a host with a text encoder.')
    names, has_background = classes.split_background()
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
    known = dict(zip(meta.get('classes') or (), meta.get('palette') or (), strict=False))
    known[BACKGROUND] = BACKGROUND_COLOR
    if all(name.lower() in known for name in names):
        return [known[name.lower()] for name in names]
    colors = distinct_colors(len(names)).tolist()
    return [BACKGROUND_COLOR if name == BACKGROUND else color for name, color in zip(names, colors, strict=True)]


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
