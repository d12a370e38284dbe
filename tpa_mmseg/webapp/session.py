"""What one visitor has: pictures, networks, results. Knows nothing about the page."""

from __future__ import annotations

import io
import tempfile
import threading
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from .. import catalog
from ..apis import Results, Segmenter, host_names
from ..apis.choice import AUTO, MINIATURE
from ..apis.picture import Picture
from ..errors import TPAError
from .examples import Example
from .limits import Limits, read_upload, read_words
from .view import Stills, View, stills_of, view_of

_MINIATURES = tuple(name for name, backbone in catalog.load().backbones.items() if backbone.suite == 'miniature')
#: The backbones to choose from.
BACKBONES = (AUTO, *catalog.load().backbones)
# The networks of one visitor run at a time: two would need twice the memory and be no faster.
_NETWORKS = threading.Lock()


@dataclass(frozen=True)
class Wish:
    """What to segment pictures with.

    Args:
        words: Classes, one per line.
        background: Whether to add one.
        host: One of the hosts that have a name.
        backbone: One of :data:`BACKBONES`.
    """

    words: str
    background: bool = False
    host: str = 'sclip'
    backbone: str = AUTO


@dataclass(frozen=True)
class Settings:
    """The sliders."""

    alpha: float = 0.5
    lambda_: float = 5.0
    k: float = 2.0


class Session:
    """Pictures of a visitor and what the networks said about them.

    Args:
        limits: What a visitor may bring.
        device: Such as ``'cuda:1'``; by default the best there is.

    Attributes:
        pictures: What :meth:`segment` will look at.
        results: What it saw last, None before.
        about: The networks in use, in words.
        defaults: The settings of their config.
    """

    def __init__(self, limits: Limits, device: str | None = None) -> None:
        self.limits, self._device = limits, device
        self.pictures: list[Picture] = []
        self.results: Results | None = None
        self.about, self.defaults = '', Settings()
        self._segmenter: Segmenter | None = None
        self._loaded: tuple | None = None
        # Of the picture and the k that were shown last.
        self._stills: tuple[tuple[int, float], Stills] | None = None
        self._lock, self._door = threading.Lock(), threading.Lock()

    # Pictures

    def add(self, content: bytes, name: str) -> None:
        """Takes a file in."""
        with self._door:  # files arrive at the same time
            if len(self.pictures) >= self.limits.images:
                raise TPAError(f'There is room for {self.limits.images} pictures: remove some before you bring more.')
            self.pictures.append(read_upload(content, name, self.limits))

    def take(self, example: Example) -> Wish:
        """Takes the pictures of an example instead of those that are there. Returns what to segment them with."""
        self.pictures = example.pictures()
        return Wish(example.classes, example.background, backbone=MINIATURE)

    def clear(self) -> None:
        """Removes all pictures."""
        self.pictures = []

    # Results

    def segment(self, wish: Wish, report: Callable[[float], None] = lambda share: None) -> Results:
        """Runs the networks on all pictures, which are the pool too.

        Args:
            wish: With what.
            report: Told the share of the pictures that are done.
        """
        pictures = list(self.pictures)
        if not pictures:
            raise TPAError('There are no pictures: drop some, or take an example.')
        with self._lock, _NETWORKS:
            segmenter = self._load(wish)
            for number, picture in enumerate(pictures, start=1):
                segmenter.adapt(picture)
                report(number / len(pictures))
            self.results, self._stills = segmenter.segment(pictures), None
            return self.results

    def _load(self, wish: Wish) -> Segmenter:
        """The networks with an empty bank. What of them is loaded already stays."""
        # The API takes the name of a config for a host too, and a config is a program.
        if wish.host not in host_names() or wish.backbone not in BACKBONES:
            raise TPAError(f'There is no host {wish.host!r} with the backbone {wish.backbone!r} on this page.')
        classes = read_words(wish.words, wish.background, self.limits)
        networks, words = (wish.host, wish.backbone), (classes, wish.background)
        loaded, self._loaded = self._loaded, None
        if loaded == (networks, words):
            self._segmenter.forget()
        elif loaded is not None and loaded[0] == networks:
            self._segmenter = self._segmenter.with_classes(*words)
        else:
            self._segmenter = self.results = None  # two sets of networks may be more than there is memory
            self._segmenter = Segmenter(
                classes,
                *networks,
                background=wish.background,
                device=self._device,
                keep=self.limits.images,
                progress=False,
            )
        self._loaded = networks, words
        self._describe(wish)
        return self._segmenter

    def _describe(self, wish: Wish) -> None:
        segmenter = self._segmenter
        # A note says why it is not the real networks.
        miniature = bool(segmenter.note) or wish.backbone in _MINIATURES
        kind = 'Miniature weights, which know painted scenes and few words' if miniature else 'Real weights'
        self.about = f'{kind}: {segmenter.about}. {segmenter.note}'.strip()
        fusion = segmenter.fusion
        self.defaults = Settings(fusion.alpha, fusion.lambda_, segmenter.bank.rule.k)

    def view(self, index: int, settings: Settings) -> View:
        """A result with other settings: only the fusion is redone, and for ``k`` the bank."""
        with self._lock:
            found = self._found
            index = min(index, len(found) - 1)
            result = found[index].fuse(**asdict(settings))
            if self._stills is None or self._stills[0] != (index, settings.k):
                self._stills = (index, settings.k), stills_of(result)
            return view_of(result, self._stills[1])

    @property
    def _found(self) -> Results:
        if self.results is None:
            raise TPAError('There are no results yet: segment some pictures first.')
        return self.results

    # Downloads

    def archive(self, settings: Settings) -> bytes:
        """A zip of what :meth:`Results.save` writes: labels, overlays, comparisons, areas. Names are our own."""
        with self._lock, tempfile.TemporaryDirectory() as folder:
            self._found.fuse(**asdict(settings)).save(folder)
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, 'w', zipfile.ZIP_DEFLATED) as archive:
                for file in sorted(path for path in Path(folder).rglob('*') if path.is_file()):
                    archive.write(file, file.relative_to(folder).as_posix())
            return buffer.getvalue()

    def bank(self, settings: Settings) -> bytes:
        """The bank as a file, for tools/segment.py and :class:`~tpa_mmseg.Segmenter`."""
        with self._lock, tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / 'bank.safetensors'
            self._found[0].fuse(k=settings.k).bank.save(path)
            return path.read_bytes()
