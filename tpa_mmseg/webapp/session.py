"""The state of one visitor: images, a segmenter and settings. Independent of the page."""

from __future__ import annotations

import io
import tempfile
import threading
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from .. import catalog
from ..apis import Segmenter, host_names
from ..apis.images import ImageSource
from ..apis.options import DEFAULT_BACKBONE
from ..errors import TPAError
from .examples import Example
from .limits import Limits, read_classes, read_upload
from .view import Stills, View, stills_of, view_of

#: The backbones to choose from.
BACKBONES = tuple(catalog.load().backbones)
# The models of one visitor run at a time: two would need twice the memory and be no faster.
_MODELS = threading.Lock()


@dataclass(frozen=True)
class FormValues:
    """The form of the page.

    Args:
        classes: Class names, one per line.
        background: Whether to add a background.
        host: Name of a host.
        backbone: One of :data:`BACKBONES`.
    """

    classes: str
    background: bool = False
    host: str = 'sclip'
    backbone: str = DEFAULT_BACKBONE


@dataclass(frozen=True)
class SliderValues:
    """The sliders of the page."""

    alpha: float = 0.5
    lambda_: float = 5.0
    k: float = 2.0


class PageSession:
    """The images of a visitor and the segmenter for them.

    Args:
        limits: Limits of uploads.
        device: Torch device, e.g. ``'cuda:1'``. Default: CUDA if available, otherwise CPU.

    Attributes:
        images: The images that :meth:`segment` will use.
        segmented: The images that it used last; empty before.
        description: The model in use, in a sentence.
        defaults: The settings of its config.
    """

    def __init__(self, limits: Limits, device: str | None = None) -> None:
        self.limits, self._device = limits, device
        self.images: list[ImageSource] = []
        self.segmented: list[ImageSource] = []
        self.description, self.defaults = '', SliderValues()
        self._segmenter: Segmenter | None = None
        self._loaded: tuple | None = None
        # Of the image and the k that were shown last.
        self._stills: tuple[tuple[int, float], Stills] | None = None
        self._lock, self._door = threading.Lock(), threading.Lock()

    # Images

    def add(self, content: bytes, name: str) -> None:
        """Add an uploaded file. Args: as for :func:`~.limits.read_upload`."""
        with self._door:  # files arrive at the same time
            if len(self.images) >= self.limits.images:
                raise TPAError(f'At most {self.limits.images} images are possible. Remove some to upload others.')
            self.images.append(read_upload(content, name, self.limits))

    def take(self, example: Example) -> FormValues:
        """Replace all images by those of an example. Returns the form for it."""
        self.images = example.sources()
        return FormValues('\n'.join(example.classes), example.background, backbone=example.backbone)

    def clear(self) -> None:
        """Remove all images."""
        self.images = []

    # Results

    def segment(self, form: FormValues, report: Callable[[float], None] = lambda share: None) -> list[ImageSource]:
        """Run the models on all images, which are also the pool. Returns the images.

        Args:
            form: Classes and model.
            report: Called with the share of the images that are done.
        """
        images = list(self.images)
        if not images:
            raise TPAError('No images. Drop some, or pick an example.')
        with self._lock, _MODELS:
            segmenter = self._load(form)
            if [image.key for image in images] != [image.key for image in self.segmented]:
                segmenter.clear_cache()
            for number, image in enumerate(images, start=1):
                segmenter.adapt(image)
                report(number / len(images))
            self.segmented, self._stills = images, None
            return images

    def _load(self, form: FormValues) -> Segmenter:
        """Return a segmenter with an empty bank. Parts that are loaded already are used again."""
        # The API also accepts a config as a host, and a config is a program.
        if form.host not in host_names() or form.backbone not in BACKBONES:
            raise TPAError(f'Unknown host {form.host!r} or backbone {form.backbone!r}. Choose from those on the page.')
        names = read_classes(form.classes, form.background, self.limits)
        model, classes = (form.host, form.backbone), (names, form.background)
        loaded, self._loaded = self._loaded, None
        if loaded == (model, classes):
            self._segmenter.reset_bank()
        elif loaded is not None and loaded[0] == model:
            self._segmenter = self._segmenter.with_classes(*classes)
        else:
            self._segmenter, self.segmented = None, []  # two models may exceed the memory
            self._segmenter = Segmenter(names, *model, background=form.background, device=self._device, progress=False)
        self._loaded = model, classes
        miniature = catalog.load().backbones[form.backbone].suite == 'miniature'
        kind = 'Miniature weights, for synthetic scenes and few words' if miniature else 'Real weights'
        self.description = f'{kind}: {self._segmenter.description}.'
        fusion = self._segmenter.fusion
        self.defaults = SliderValues(fusion.alpha, fusion.lambda_, self._segmenter.bank.rule.k)
        return self._segmenter

    def view(self, index: int, sliders: SliderValues) -> View:
        """Return an image with other settings: only the fusion is computed again, and for ``k`` the bank."""
        with self._lock:
            segmenter = self._segmenter_in_use()
            index = min(index, len(self.segmented) - 1)
            image = self.segmented[index]
            result = segmenter.segment_one(image, **asdict(sliders))
            if self._stills is None or self._stills[0] != (index, sliders.k):
                self._stills = (index, sliders.k), stills_of(result, segmenter.anchors(image, sliders.k))
            return view_of(result, self._stills[1])

    def _segmenter_in_use(self) -> Segmenter:
        if not self.segmented:
            raise TPAError('No results yet. Segment some images first.')
        return self._segmenter

    # Downloads

    def archive(self, sliders: SliderValues) -> bytes:
        """Return a zip of what ``Segmentations.save`` writes: labels, overlays, comparisons, areas."""
        with self._lock, tempfile.TemporaryDirectory() as folder:
            self._segmenter_in_use().segment(self.segmented, **asdict(sliders)).save(folder)
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, 'w', zipfile.ZIP_DEFLATED) as archive:
                for file in sorted(path for path in Path(folder).rglob('*') if path.is_file()):
                    archive.write(file, file.relative_to(folder).as_posix())
            return buffer.getvalue()

    def bank(self, sliders: SliderValues) -> bytes:
        """Return the bank as a file, for tools/segment.py and :class:`~tpa_mmseg.Segmenter`."""
        with self._lock, tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / 'bank.safetensors'
            self._segmenter_in_use().save_bank(path, sliders.k)
            return path.read_bytes()
