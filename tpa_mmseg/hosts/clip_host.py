"""Base class of the CLIP hosts: from an image to windows, from patch features to text scores, and to a ScoreMap."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from mmseg.structures import SegDataSample
from torch import Tensor

from ..clip.names import Classes, ClassNames
from ..clip.source import CLIPSpec
from ..clip.text import IMAGENET_TEMPLATES, query_features, read_features
from ..core import DecisionRule, QueryScores, RowSource, ScoreMap
from ..errors import TPAError
from ..layers.position import RULES
from ..options import AtLeastOne, Choice, Positive, Range, Share, one_of
from .base import Host
from .batch import original_size, split_batch, unpad
from .pamr import REFINED_BYTES, RefinedMap
from .windows import Cut, Sliding, StitchedWindows, run_on_windows, stack_equal

# Windows per call of the network unless a config sets them: a CPU gains nothing from more than one.
_WINDOW_BATCH = {'cpu': 1}
_WINDOW_BATCH_GPU = 16


class CLIPHost(Host):
    """A frozen CLIP whose patch features are compared with text. Subclasses compute the features.

    An image takes three steps, which :meth:`score_maps` puts together and which wrappers call one by one: :meth:`cut`,
    :meth:`score_windows` and :meth:`score_maps_of`.

    Args:
        clip: ``dict(model=, pretrained=, precision=, quick_gelu=, compile=)``, see :class:`CLIPSpec`.
        class_names: File, packaged list, string or list of class names, see :meth:`ClassNames.read`.
        text_features: Ready-made query features instead, see :func:`read_features`.
        query_to_class: Class of each ready-made query, if neither class names nor the file give it.
        templates: Prompt templates. Default: the 80 of ImageNet.
        logit_scale: Factor of the cosines before the softmax over queries.
        prob_thd: Pixels whose best class score is below it become class 0, the background.
        area_thd: Classes that win at most this share of all foreground pixels are struck out.
        slide_crop: Side of a window, 0 for the whole image.
        slide_stride: Step between windows.
        padding: Windows are zero-padded, centered, to a multiple of this number of pixels, or of a ``'patch'``.
        resize_via_input: For whole images: resize scores to the network's input first, then to the original size,
            instead of straight from patches to the original size.
        window_batch: Windows (of one image or several) per call of the network.
        pamr_steps: Steps of mask refinement at the original size, 0 for none.
        pamr_dilations: Distances of the neighbors in it.
        pamr_bytes: Refined scores that exist at a time; the channels beyond are refined a part at a time.
        position: Rule of the position embedding, see :class:`CLIPTower`.
        **kwargs: As for :class:`Host`.

    Attributes:
        scores_single_windows: Whether :meth:`score_windows` compares each window with text, so that a wrapper may
            compute these scores in another way.
    """

    scores_single_windows: bool = True

    def __init__(
        self,
        clip: Annotated[dict, CLIPSpec],
        class_names: Classes | None = None,
        text_features: Tensor | str | os.PathLike | None = None,
        query_to_class: Sequence[Annotated[int, Range(0)]] | None = None,
        templates: Sequence[str] = IMAGENET_TEMPLATES,
        logit_scale: Positive = 40.0,
        prob_thd: Share = 0.0,
        area_thd: Share | None = None,
        slide_crop: Annotated[int, Range(0)] = 224,
        slide_stride: AtLeastOne = 112,
        padding: AtLeastOne | Literal['patch'] | None = None,
        resize_via_input: bool = False,
        window_batch: AtLeastOne | None = None,
        pamr_steps: Annotated[int, Range(0)] = 0,
        pamr_dilations: Sequence[AtLeastOne] = (8, 16),
        pamr_bytes: AtLeastOne = REFINED_BYTES,
        position: Annotated[str, Choice(RULES)] = 'dino',
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)
        source = CLIPSpec.of(clip)
        self.tower = source.tower(position)
        self.statistics = source.mean, source.std
        self.sliding = Sliding(slide_crop, slide_stride, self._pad_to(padding))
        if not self.sliding.whole:
            self.tower.grid((self.sliding.spans(slide_crop)[0].padded,) * 2)  # raises if it is smaller than a patch
        self.rule = DecisionRule(prob_thd, area_thd)
        self.logit_scale = float(logit_scale)
        self.resize_via_input = one_of('resize_via_input', resize_via_input, (False, True))
        if window_batch is not None and window_batch < 1:
            raise TPAError(f'window_batch must be at least 1, or None for the default, not {window_batch}.')
        self.window_batch = window_batch
        self.pamr_steps, self.pamr_dilations, self.pamr_bytes = pamr_steps, tuple(pamr_dilations), int(pamr_bytes)
        names = None if class_names is None else ClassNames.read(class_names)
        classes = query_to_class
        if text_features is not None:
            features, stored = read_features(text_features)
            classes = stored if classes is None else classes
        elif names is not None:
            features = query_features(source, names.queries, tuple(templates))
        else:
            raise TPAError(f'{type(self).__name__} needs class names: set class_names or text_features.')
        self.register_buffer('text_features', features)
        self.names = names
        self._set_classes(names, classes)

    def _set_classes(self, names: ClassNames | None, classes: Sequence[int] | None) -> None:
        """Sets the class of each query. Raises TPAError if names, features and classes do not fit together."""
        if names is not None:
            classes = names.query_to_class
        elif classes is None:
            classes = range(len(self.text_features))
        self.query_to_class = [int(label) for label in classes]
        queries, width = self.text_features.shape
        if len(self.query_to_class) != queries:
            raise TPAError(
                f'text_features has {queries} queries, but there are {len(self.query_to_class)} class names or entries '
                'of query_to_class: give one feature per name.'
            )
        if width != self.tower.embed_dim:
            raise TPAError(
                f'text_features has {width} channels, but the image features have {self.tower.embed_dim}: '
                'use text features of this CLIP model.'
            )
        found = max(self.query_to_class) + 1
        if set(self.query_to_class) != set(range(found)):
            raise TPAError(f'query_to_class must contain every class from 0 to {found - 1}.')
        if self.num_classes not in (None, found):
            understood = '' if names is None else f' ({names})'
            raise TPAError(
                f'num_classes is {self.num_classes}, but {found} classes are given{understood}: '
                'name every class, in the order of the dataset.'
            )
        if found == 1:
            raise TPAError(
                f'One class{"" if names is None else f" ({names.titles[0]!r})"} is not enough, because every pixel '
                "would belong to it: name more classes, or a background, e.g. ['background', 'cat']."
            )
        self.num_classes = found
        if self.rule.prob_thd > 0 and names is not None and not names.looks_like_background:
            warnings.warn(
                f'prob_thd = {self.rule.prob_thd} sends uncertain pixels to class 0, {names.titles[0]!r}, which does '
                "not look like a background: set prob_thd=0, or name class 0 'background'.",
                stacklevel=3,
            )

    def _pad_to(self, padding: int | str | None) -> int:
        """Returns the number of pixels that window sides are padded to a multiple of."""
        if padding == 'patch':
            return self.tower.patch_size
        if padding is None or (isinstance(padding, int) and padding > 0):
            return padding or 1
        raise TPAError(f"padding must be a number of pixels, 'patch' or None, not {padding!r}.")

    @abstractmethod
    def features(self, images: Tensor) -> Tensor:
        """(B, 3, h, w) windows -> (B, E, gh, gw) features in the space of the text, not normalized."""

    def patch_scores(self, images: Tensor) -> Tensor:
        """(B, 3, h, w) windows -> (B, Q, gh, gw) float32 cosines with the text, each window on its own."""
        with self.tower.autocast():
            features = self.features(images)
        return self.cosines(features)

    def cosines(self, features: Tensor, text: Tensor | None = None) -> Tensor:
        """(B, E, gh, gw) features -> (B, Q, gh, gw) cosines with the text, always in float32.

        Args:
            features: Not normalized.
            text: (Q, E) unit vectors. Default: those of the host's queries.
        """
        unit = F.normalize(features.float(), dim=1)
        with torch.autocast(unit.device.type, enabled=False):
            return torch.einsum('behw,qe->bqhw', unit, self.text_features if text is None else text)

    def score_maps(
        self, inputs: Tensor | Sequence[Tensor], data_samples: Sequence[SegDataSample] | None = None
    ) -> list[ScoreMap]:
        cuts = self.cut(inputs, data_samples)
        return self.score_maps_of(cuts, self.score_windows([cut.windows for cut in cuts]))

    def cut(self, inputs: Tensor | Sequence[Tensor], data_samples: Sequence[SegDataSample] | None = None) -> list[Cut]:
        """First step: cuts every image of a batch into windows. Args: as for :meth:`Host.score_maps`."""
        cuts = []
        for image, sample in split_batch(inputs, data_samples):
            image = image if sample is None else unpad(image, sample.metainfo)
            cuts.append(Cut(image, sample, self.sliding.cut(self.fit(image))))
        return cuts

    def fit(self, image: Tensor) -> Tensor:
        """Returns a (3, H, W) image in the size in which it is cut."""
        return image

    def fitted_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Height and width of an image after :meth:`fit`."""
        return size

    def score_windows(self, windows: list[list[Tensor]]) -> list[list[Tensor]]:
        """Second step: runs the network on the (3, h, w) windows of each image, every window on its own.

        Returns:
            For each window its map from :meth:`patch_scores`.
        """
        return run_on_windows(self.patch_scores, windows, self.windows_per_call)

    def score_maps_of(self, cuts: Sequence[Cut], scores: Sequence[list[Tensor]]) -> list[ScoreMap]:
        """Third step: stitches, refines and merges. Args: cuts: from :meth:`cut`; scores: of the windows of each."""
        # Only the network runs in reduced precision.
        with torch.autocast(self.text_features.device.type, enabled=False):
            return [self._score_map(cut, maps) for cut, maps in zip(cuts, scores, strict=True)]

    def _score_map(self, cut: Cut, maps: list[Tensor]) -> ScoreMap:
        """The class probabilities of one image. Args: cut; maps: the scores of its windows."""
        alarms = self.check_scores(stack_equal(maps), cut.sample)
        scores = self.decode(maps, cut.image, original_size(cut.image, cut.sample))
        scores.alarms.extend(alarms)
        return scores

    @property
    def windows_per_call(self) -> int:
        """Number of windows per call of the network."""
        return self.window_batch or _WINDOW_BATCH.get(self.text_features.device.type, _WINDOW_BATCH_GPU)

    def decode(self, maps: list[Tensor], image: Tensor, size: tuple[int, int]) -> ScoreMap:
        """The class probabilities of one image.

        Args:
            maps: (Q, gh, gw) cosines of each of its windows.
            image: (3, H, W) network input.
            size: Height and width of the original image.
        """
        # Stitching and refinement are linear, so the scale may come first, on the small maps.
        scaled = [scores for batch in stack_equal(maps) for scores in batch * self.logit_scale]
        return QueryScores(self.assemble(scaled, image, size), size, self.query_to_class, self.rule)

    def assemble(self, maps: list[Tensor], image: Tensor, size: tuple[int, int]) -> Tensor | RowSource:
        """One map from those of the windows, stitched and, if so configured, refined. Args: as for :meth:`decode`."""
        source = self.stitch(maps, tuple(image.shape[-2:]), size)
        if not self.pamr_steps:
            return source
        return RefinedMap(source, image, size, self.pamr_steps, self.pamr_dilations, self.pamr_bytes)

    def stitch(self, maps: list[Tensor], network: tuple[int, int], size: tuple[int, int]) -> Tensor | RowSource:
        """One map from those of the windows. Args: maps: of the windows; network, size: of the input, of the image."""
        if self.sliding.whole and not self.resize_via_input:
            return maps[0]
        return StitchedWindows(maps, self.sliding, network, size, nonfinite=self.nonfinite == 'keep')

    def own_names(self) -> list[str] | None:
        return None if self.names is None else self.names.titles

    def settings(self) -> dict:
        """Returns the options that change the scores, in the types of JSON."""
        return {
            'precision': self.tower.precision,
            'position': self.tower.positions.rule,
            'logit_scale': self.logit_scale,
            'sliding': asdict(self.sliding),
            'resize_via_input': self.resize_via_input,
            'pamr': [self.pamr_steps, *self.pamr_dilations] if self.pamr_steps else None,
            'query_to_class': self.query_to_class,
        }

    def fingerprint(self) -> dict:
        return {**super().fingerprint(), **self.settings()}
