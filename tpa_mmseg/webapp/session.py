"""Visitors: each has images, a bank and evidence of their own; the networks are shared. Independent of the page."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .. import catalog
from ..apis import Segmentation, Segmenter, host_names
from ..apis.images import ImageSource
from ..apis.options import DEFAULT_BACKBONE
from ..errors import TPAError
from .limits import Limits, read_classes

#: The backbones to choose from, and whether each is for the miniature world only.
BACKBONES = {name: backbone.suite == 'miniature' for name, backbone in catalog.load().backbones.items()}
# Models that stay loaded when nobody uses them, and bytes of evidence per visitor.
_KEPT_MODELS, _EVIDENCE = 2, 1 << 29


class Form(NamedTuple):
    """The form of the page.

    Args:
        classes: Class names, as :mod:`tpa_mmseg.clip.names` reads them.
        background: Whether to add a background.
        host: Name of a host.
        backbone: One of :data:`BACKBONES`.
    """

    classes: str
    background: bool = False
    host: str = 'sclip'
    backbone: str = DEFAULT_BACKBONE


class Visits:
    """The visitors of the page, and the networks, one copy of each for all of them.

    Args:
        limits: The limits.
        device: Torch device, e.g. ``'cuda:1'``. Default: CUDA if available, otherwise CPU.

    Attributes:
        running: Held while networks run: two at a time would need more memory and be no faster.
    """

    def __init__(self, limits: Limits, device: str | None = None) -> None:
        self.limits, self._device = limits, device
        self.running, self._door = threading.Lock(), threading.Lock()
        self._visits: dict[str, Visit] = {}
        self._models: dict[tuple[str, str], Segmenter] = {}

    def find(self, name: str) -> Visit:
        """Return a visitor's state, a new one for a new visitor. Raises TPAError if there are too many."""
        with self._door:
            now, patience = time.monotonic(), 60 * self.limits.minutes
            self._visits = {key: visit for key, visit in self._visits.items() if now - visit.used < patience}
            if name not in self._visits and len(self._visits) >= self.limits.visitors:
                raise TPAError(f'The page has {self.limits.visitors} visitors already. Try again in some minutes.')
            visit = self._visits.setdefault(name, Visit(self))
            visit.used = now
            return visit

    def leave(self, name: str) -> None:
        """Forget a visitor."""
        with self._door:
            self._visits.pop(name, None)

    def segmenter(self, form: Form) -> Segmenter:
        """Return a segmenter with a bank and a cache of its own. Call it while :attr:`running` is held."""
        # The API also accepts a config as a host, and a config is a program.
        if form.host not in host_names() or form.backbone not in BACKBONES:
            raise TPAError(f'Unknown host {form.host!r} or backbone {form.backbone!r}. Choose from those on the page.')
        names, model = read_classes(form.classes, self.limits).names, (form.host, form.backbone)
        options = {'background': form.background, 'device': self._device, 'cache_bytes': _EVIDENCE, 'progress': False}
        # Taken out and put in again: the last one is the latest.
        self._models[model] = first = self._models.pop(model, None) or Segmenter(names, *model, **options)
        if len(self._models) > _KEPT_MODELS:
            del self._models[next(iter(self._models))]
        return first.with_classes(names, form.background)


class Visit:
    """The images of a visitor and their segmenter.

    Args:
        visits: All visitors.

    Attributes:
        shown: The images that were segmented.
        index: The one in view.
        folder: Temporary folder of the files to download, only for this user of the machine.
    """

    def __init__(self, visits: Visits) -> None:
        self.shown: Sequence[ImageSource] = ()
        self.index, self.used = 0, 0.0
        self._visits, self._lock, self.folder = visits, threading.Lock(), tempfile.TemporaryDirectory()
        self._loaded: tuple[Form, Segmenter] | None = None

    def segment(
        self, form: Form, images: Sequence[ImageSource], shown: int | None, report: Callable[[float], object]
    ) -> Segmenter:
        """Run the networks on images, which are also the pool. Returns the segmenter, which has the settings.

        Args:
            form: Classes and model.
            images: The images.
            shown: How many of them can be viewed; None for all.
            report: Called with the share of the images that are done.
        """
        if not images:
            raise TPAError('No images. Upload some, or pick an example.')
        with self._lock, self._visits.running:
            if self._loaded is None or self._loaded[0] != form:
                self.shown, self._loaded = (), None
                self._loaded = form, self._visits.segmenter(form)
            segmenter = self._loaded[1]
            segmenter.reset_bank()
            for number, image in enumerate(images, start=1):
                segmenter.adapt(image)
                report(number / len(images))
            segmenter.diagnose()
            self.shown, self.index = images[:shown], 0
            return segmenter

    def view(self, *settings: float) -> tuple[Segmentation, Segmenter]:
        """Decide the image in view: only the fusion is computed again, and for another ``k`` the bank.

        Args:
            settings: ``alpha``, ``lambda_``, ``k`` and ``consistent``.
        """
        with self._lock:
            segmenter = self._segmenter()
            return segmenter.segment_one(self.shown[self.index], *settings), segmenter

    def save(self, *settings: float) -> list[str]:
        """Write labels, overlays, comparisons and areas of all images into a zip, and the bank. Args: as for view."""
        with self._lock, tempfile.TemporaryDirectory() as content:
            segmenter, bank = self._segmenter(), f'{self.folder.name}/bank.safetensors'
            segmenter.segment(self.shown, *settings).save(content)
            segmenter.save_bank(bank, settings[2])
            return [shutil.make_archive(f'{self.folder.name}/segmentations', 'zip', content), bank]

    def _segmenter(self) -> Segmenter:
        if not self.shown:
            raise TPAError('No results yet. Segment some images first.')
        return self._loaded[1]
