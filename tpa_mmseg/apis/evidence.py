"""What the models say about a user's images: from a cache, or by one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core import EvidenceCache
from .images import ImageSource
from .loading import ImageEvidence, LoadedModel, PreparedImage


class EvidenceSource:
    """Looks at an image once, and remembers the evidence as long as there is room.

    Args:
        loaded: The models.
        limit: Bytes of evidence to keep. That of the last image stays in any case.
    """

    def __init__(self, loaded: LoadedModel, limit: int) -> None:
        self._loaded = loaded
        self.clear(limit)

    def clear(self, limit: int) -> None:
        """Forget the evidence of all images. Args: limit: As for the class."""
        self.cache: EvidenceCache[ImageEvidence] = EvidenceCache(limit)
        self._last: ImageEvidence | None = None
        self._last_key: str | None = None

    def of(self, image: ImageSource, keep: bool = True) -> ImageEvidence:
        """Return the evidence of an image. Args: keep: Put it into the cache if there is room."""
        found = self.cache.get(image.key)
        if found is None:
            again = self._last if self._last_key == image.key else None
            found = again or self._loaded.look([self._loaded.prepare(image)])[0]
            if keep:
                self.cache.put(image.key, found)
        if found is not self._last:
            self.release()
        self._last, self._last_key = found, image.key
        return found

    def of_batch(self, images: Sequence[PreparedImage]) -> Iterator[tuple[ImageSource, ImageEvidence]]:
        """Yield images that go through the models together, each with its evidence, of which none is kept."""
        for each, evidence in zip(images, self._loaded.look(images), strict=True):
            yield each.image, evidence

    def release(self) -> None:
        """Free what can be computed again: only the image in view holds it."""
        if self._last is not None:
            self._last.release()
