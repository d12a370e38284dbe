"""What most datasets come down to: images here, labels there, one of each per name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from ..errors import TPAError
from .jobs import COPY, Given, Job
from .layouts import Layout
from .sources import Member, Sources

T = TypeVar('T')


def find(sources: Sources, ending: str, shown: str, archive: str) -> dict[str, Member]:
    """The files of one kind, or a sentence that says which archive has them.

    Args:
        sources: Where to look.
        ending: How their paths end, as in :meth:`Sources.files`.
        shown: The same for people.
        archive: The archive that has them.
    """
    found = sources.files(ending)
    if not found:
        raise TPAError(
            f'There is no {shown} in {sources}: add {archive} (or the folder it was unpacked to) to --source.'
        )
    return found


def take(files: Mapping[str, T], stems: Iterable[str], shown: str, wanted_by: object) -> dict[str, T]:
    """The files of these names, or a sentence about those that are missing.

    Args:
        files: Name -> file.
        stems: The names.
        shown: How the path of such a file ends, with ``{}`` for its name.
        wanted_by: What says that they should be there.
    """
    stems = list(stems)
    missing = [stem for stem in stems if stem not in files]
    if missing:
        more = f' and {len(missing) - 1} more' if len(missing) > 1 else ''
        raise TPAError(
            f'{shown.format(missing[0])}{more}, which {wanted_by} asks for, cannot be found: '
            'a source is incomplete or of another dataset; give all of its archives.'
        )
    return {stem: files[stem] for stem in stems}


def jobs(
    layout: Layout,
    split: str,
    images: Mapping[str, Member],
    labels: Mapping[str, Member | Given],
    convert: Callable[..., bytes] | None = None,
    recipe: str = COPY,
) -> list[Job]:
    """One job per image and per label.

    Args:
        layout: Where they go.
        split: ``'val'`` or ``'train'``.
        images: Name -> image.
        labels: Name -> what its label is made from.
        convert: As in :class:`Job`, for the labels.
        recipe: As in :class:`Job`, for the labels.
    """
    work = [Job(layout.image(split, stem), image) for stem, image in images.items()]
    work += [Job(layout.label(split, stem), label, convert, recipe) for stem, label in labels.items()]
    return work
