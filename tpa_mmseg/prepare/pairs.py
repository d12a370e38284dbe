"""Pairs of images and labels, as in most datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from ..errors import TPAError
from .jobs import COPY, InMemory, Job
from .layouts import Layout
from .sources import Member, Sources

T = TypeVar('T')


def find(sources: Sources, ending: str, shown: str, archive: str) -> dict[str, Member]:
    """Returns the files of one kind. Raises TPAError with the name of the archive if there are none.

    Args:
        sources: Where to look.
        ending: End of their paths, as in :meth:`Sources.files`.
        shown: The same for the error message.
        archive: The archive that contains them.
    """
    found = sources.files(ending)
    if not found:
        raise TPAError(f'No {shown} in {sources}. Add {archive} (or the folder it was unpacked to) to --source.')
    return found


def take(files: Mapping[str, T], stems: Iterable[str], shown: str, required_by: object) -> dict[str, T]:
    """Returns the files with these names. Raises TPAError if any are missing.

    Args:
        files: Name -> file.
        stems: The names.
        shown: End of the path of such a file, with ``{}`` for its name.
        required_by: What requires them, for the error message.
    """
    stems = list(stems)
    missing = [stem for stem in stems if stem not in files]
    if missing:
        more = f' and {len(missing) - 1} more' if len(missing) > 1 else ''
        raise TPAError(
            f'Missing {shown.format(missing[0])}{more}, required by {required_by}. '
            'A source is incomplete or belongs to another dataset: pass all archives of the dataset.'
        )
    return {stem: files[stem] for stem in stems}


def jobs(
    layout: Layout,
    split: str,
    images: Mapping[str, Member],
    labels: Mapping[str, Member | InMemory],
    convert: Callable[..., bytes] | None = None,
    recipe: str = COPY,
) -> list[Job]:
    """Returns one job per image and per label.

    Args:
        layout: Layout of the dataset.
        split: ``'val'`` or ``'train'``.
        images: Name -> image.
        labels: Name -> origin of its label.
        convert: As in :class:`Job`, for the labels.
        recipe: As in :class:`Job`, for the labels.
    """
    work = [Job(layout.image(split, stem), image) for stem, image in images.items()]
    work += [Job(layout.label(split, stem), label, convert, recipe) for stem, label in labels.items()]
    return work
