"""What all CLIP hosts share: from an image to windows, from patch features to text scores, and to a ScoreMap."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict

import torch
import torch.nn.functional as F
from mmseg.structures import SegDataSample
from torch import Tensor

from ..clip.names import ClassNames
from ..clip.source import CLIPSpec
from ..clip.text import IMAGENET_TEMPLATES, query_features, read_features
from ..core import DecisionRule, QueryScores, Resized, RowSource, ScoreMap
from ..core.scores import band_ranges
from ..errors import TPAError
from ..options import one_of
from .base import Host
from .batch import original_size, split_batch, unpad
from .pamr import refine_
from .windows import Sliding, StitchedWindows, run_on_windows

#: What a plug-in may score the windows of images with, in the place of :meth:`CLIPHost.score_windows`.
Scorer = Callable[[list[list[Tensor]]], list[list[Tensor]]]

# Windows per call of the network where a config does not say: a CPU gains nothing from more than one.
_WINDOW_BATCH = {'cpu': 1}
_WINDOW_BATCH_GPU = 16


class CLIPHost(Host):
    """A frozen CLIP whose patch features are compared with text. Subclasses say how the features are made.

    Args:
        clip: ``dict(model=, pretrained=, precision=)``, see :class:`CLIPSpec`.
        class_names: File or list of the classes' names, see :meth:`ClassNames.read`.
        text_features: Ready-made query features instead, see :func:`read_features`.
        query_to_class: Class of each ready-made query, if neither the class names nor the file say so.
        templates: Prompt templates, by default the 80 of ImageNet.
        logit_scale: Factor of the cosines before the softmax over queries.
        prob_thd: Pixels whose best class score is below it become class 0, the background.
        area_thd: Classes that win at most this share of all foreground pixels are struck out.
        slide_crop: Side of a window, 0 for the whole image.
        slide_stride: Step between windows.
        padding: Windows are zero-padded, centered, to a multiple of this number of pixels, or of a ``'patch'``.
        upsamplings: For whole images: 1 straight from patches to the original size, 2 by way of the network's input.
        window_batch: Windows (of one image or several) per call of the network.
        pamr_steps: Steps of mask refinement at the original size, 0 for none.
        pamr_dilations: Distances of the neighbors in it.
        position: Rule of the position embedding, see :class:`CLIPTower`.
        **kwargs: As for :class:`Host`.
    """

    def __init__(
        self,
        clip: dict,
        class_names: str | os.PathLike | Sequence[str | Sequence[str]] | None = None,
        text_features: Tensor | str | os.PathLike | None = None,
        query_to_class: Sequence[int] | None = None,
        templates: Sequence[str] = IMAGENET_TEMPLATES,
        logit_scale: float = 40.0,
        prob_thd: float = 0.0,
        area_thd: float | None = None,
        slide_crop: int = 224,
        slide_stride: int = 112,
        padding: int | str | None = None,
        upsamplings: int = 1,
        window_batch: int | None = None,
        pamr_steps: int = 0,
        pamr_dilations: Sequence[int] = (8, 16),
        position: str = 'dino',
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)
        source = CLIPSpec.of(clip)
        self.tower = source.tower(position)
        self.statistics = source.mean, source.std
        self.sliding = Sliding(slide_crop, slide_stride, self._multiple(padding))
        if not self.sliding.whole:
            self.tower.grid((self.sliding.spans(slide_crop)[0].padded,) * 2)  # refuses windows smaller than a patch
        self.rule = DecisionRule(prob_thd, area_thd)
        self.logit_scale = float(logit_scale)
        self.upsamplings = one_of('upsamplings', upsamplings, (1, 2))
        if window_batch is not None and window_batch < 1:
            raise TPAError(f'window_batch must be at least 1, or None, not {window_batch}.')
        self.window_batch = window_batch
        self.pamr_steps, self.pamr_dilations = pamr_steps, tuple(pamr_dilations)
        names = None if class_names is None else ClassNames.read(class_names)
        classes = query_to_class
        if text_features is not None:
            features, stored = read_features(text_features)
            classes = stored if classes is None else classes
        elif names is not None:
            features = query_features(source, names.queries, tuple(templates))
        else:
            raise TPAError(f'{type(self).__name__} needs class_names or text_features.')
        self.register_buffer('text_features', features)
        self.names = names
        self._set_classes(names, classes)

    def _set_classes(self, names: ClassNames | None, classes: Sequence[int] | None) -> None:
        """Decides which class each query belongs to, and refuses what does not fit together."""
        if names is not None:
            classes = names.query_to_class
        elif classes is None:
            classes = range(len(self.text_features))
        self.query_to_class = [int(label) for label in classes]
        queries, width = self.text_features.shape
        if len(self.query_to_class) != queries:
            raise TPAError(f'There are {queries} text features for {len(self.query_to_class)} class names or queries.')
        if width != self.tower.embed_dim:
            raise TPAError(f'The text features have {width} numbers, the image features {self.tower.embed_dim}.')
        found = max(self.query_to_class) + 1
        if set(self.query_to_class) != set(range(found)):
            raise TPAError(f'query_to_class must name every class from 0 to {found - 1}.')
        if self.num_classes not in (None, found):
            raise TPAError(
                f'The dataset has {self.num_classes} classes, but class_names gives {found}: '
                'name every class, in the order of the dataset.'
            )
        self.num_classes = found
        if self.rule.prob_thd > 0 and names is not None and not names.looks_like_background:
            warnings.warn(
                f'prob_thd = {self.rule.prob_thd} sends unsure pixels to class 0, {names.names[0][0]!r}, which does '
                'not look like a background.',
                stacklevel=3,
            )

    def _multiple(self, padding: int | str | None) -> int:
        """Of which number of pixels a window's sides must be multiples."""
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
            text: (Q, E) unit vectors, by default those of the host's queries.
        """
        unit = F.normalize(features.float(), dim=1)
        with torch.autocast(unit.device.type, enabled=False):
            return torch.einsum('behw,qe->bqhw', unit, self.text_features if text is None else text)

    def score_maps(
        self,
        inputs: Tensor | Sequence[Tensor],
        data_samples: Sequence[SegDataSample] | None = None,
        scorer: Scorer | None = None,
    ) -> list[ScoreMap]:
        """As for :meth:`Host.score_maps`. Args: scorer: takes the place of :meth:`score_windows`: a plug-in's."""
        pairs = [
            (image if sample is None else unpad(image, sample.metainfo), sample)
            for image, sample in split_batch(inputs, data_samples)
        ]
        scored = (scorer or self.score_windows)([self.sliding.cut(image) for image, _ in pairs])
        # Only the network runs in reduced precision.
        with torch.autocast(self.text_features.device.type, enabled=False):
            return [
                self.decode([self.check_scores(scores, sample) for scores in maps], image, original_size(image, sample))
                for (image, sample), maps in zip(pairs, scored, strict=True)
            ]

    def score_windows(self, cuts: list[list[Tensor]]) -> list[list[Tensor]]:
        """The (3, h, w) windows of each image -> their maps from :meth:`patch_scores`, every window on its own."""
        return run_on_windows(self.patch_scores, cuts, self.windows_per_call)

    @property
    def windows_per_call(self) -> int:
        """How many windows the network sees at once."""
        return self.window_batch or _WINDOW_BATCH.get(self.text_features.device.type, _WINDOW_BATCH_GPU)

    def decode(self, maps: list[Tensor], image: Tensor, size: tuple[int, int]) -> ScoreMap:
        """The class probabilities of one image.

        Args:
            maps: (Q, gh, gw) cosines of each of its windows.
            image: (3, H, W) network input.
            size: Height and width of the original image.
        """
        # Stitching and refinement are linear, so the scale may come first, on the small maps.
        scaled = [scores * self.logit_scale for scores in maps]
        return QueryScores(self.assemble(scaled, image, size), size, self.query_to_class, self.rule)

    def assemble(self, maps: list[Tensor], image: Tensor, size: tuple[int, int]) -> Tensor | RowSource:
        """One map from those of the windows, stitched and, if so configured, refined. Args: as for :meth:`decode`."""
        if self.sliding.whole and self.upsamplings == 1:
            source = maps[0]
        else:
            source = StitchedWindows(maps, self.sliding, tuple(image.shape[-2:]), size)
        return self._refine(source, image, size) if self.pamr_steps else source

    def _refine(self, source: Tensor | RowSource, image: Tensor, size: tuple[int, int]) -> Tensor:
        """Mask refinement, which needs the scores at full size: (Q, H, W)."""
        source = Resized(source, size)
        scores = torch.empty(source.shape, device=source.device)
        for top, bottom in band_ranges(source.shape[0], size, source.device):
            scores[:, top:bottom] = source.rows(top, bottom)
        guide = F.interpolate(image[None].float(), size, mode='bilinear')[0]
        return refine_(scores, guide, self.pamr_steps, self.pamr_dilations)

    def own_names(self) -> list[str] | None:
        return None if self.names is None else self.names.titles

    def settings(self) -> dict:
        """The options that change the numbers, in the types of JSON."""
        return {
            'precision': self.tower.precision,
            'position': self.tower.positions.rule,
            'logit_scale': self.logit_scale,
            'sliding': asdict(self.sliding),
            'upsamplings': self.upsamplings,
            'pamr': [self.pamr_steps, *self.pamr_dilations] if self.pamr_steps else None,
            'query_to_class': self.query_to_class,
        }

    def fingerprint(self) -> dict:
        return {**super().fingerprint(), **self.settings()}
