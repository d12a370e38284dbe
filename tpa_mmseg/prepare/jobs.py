"""The work of a preparation: one job per file, done in parallel, with a progress bar."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..console import ProgressBar
from ..errors import TPAError
from .output import Output
from .sources import Member

WORKERS = min(8, os.cpu_count() or 1)

# Recipe of what is taken over as it is.
COPY = 'copy'

T = TypeVar('T')


@dataclass(frozen=True)
class Given:
    """Something to make a file from that is already in memory.

    Args:
        value: What it is.
        name: What to call it.
    """

    value: Any
    name: str
    file: Path | None = None
    place: int = 0

    def read(self) -> Any:
        """The value."""
        return self.value

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Job:
    """One file to be written.

    Args:
        target: Its path below the output folder.
        origin: What it is made from.
        convert: Makes its content from what the origin holds; None where the two are the same. A ValueError of it is
            what to say after the origin's name.
        recipe: A name for the conversion: a file made by another recipe is made anew.
    """

    target: str
    origin: Member | Given
    convert: Callable[[Any], bytes] | None = None
    recipe: str = COPY


def run(jobs: Sequence[Job], output: Output, workers: int = WORKERS, link: bool = False) -> int:
    """Does all jobs that are not done yet.

    Args:
        jobs: The jobs.
        output: Where the files go.
        workers: Number of threads that convert and write. What they spend their time on, compressing pictures and
            waiting for the disk, runs outside of Python's lock. The sources are read by one, in their own order.
        link: Make links to what lies in a folder and is taken over as it is.

    Returns:
        The number of files that were written now.
    """
    pending = [job for job in jobs if not output.has(job.target, job.recipe) and not _in_place(job, output.folder)]
    # A compressed archive can only be read from its beginning to its end.
    pending.sort(key=lambda job: job.origin.place)
    output.sweep(job.target for job in pending)

    def finish(job: Job, content: Any) -> Job:
        if link and _is_linkable(job):
            output.link(job.target, job.origin.file)
        else:
            output.write(job.target, _converted(job, content))
        return job

    def read() -> Iterator[tuple[Job, Any]]:
        for job in pending:
            yield job, None if link and _is_linkable(job) else job.origin.read()

    for job in in_parallel(finish, read(), len(pending), workers, 'Writing'):
        output.record(job.target, job.recipe)
    return len(pending)


def in_parallel(
    function: Callable[..., T], arguments: Iterable[tuple], total: int, workers: int, description: str
) -> Iterator[T]:
    """Calls a function in several threads, and yields its results in order, with a progress bar on stderr.

    Only a few arguments are taken ahead, so that they may be large. The first exception ends it.
    """
    waiting: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(max(1, workers))
    try:
        with ProgressBar(description, total, 'files', transient=total == 0) as bar:
            for each in arguments:
                waiting.append(pool.submit(function, *each))
                while len(waiting) > 4 * workers or (waiting and waiting[0].done()):
                    yield waiting.popleft().result()
                    bar.advance()
            while waiting:
                yield waiting.popleft().result()
                bar.advance()
    finally:
        pool.shutdown(cancel_futures=True)


def _converted(job: Job, content: Any) -> bytes:
    if job.convert is None:
        return content
    try:
        return job.convert(content)
    except ValueError as error:
        raise TPAError(f'{job.origin} {error}.') from error


def _is_linkable(job: Job) -> bool:
    return job.convert is None and job.origin.file is not None


def _in_place(job: Job, folder: Path) -> bool:
    """Whether a file already lies where it belongs, because the output folder is the one it comes from."""
    target = folder / job.target
    return _is_linkable(job) and target.is_file() and target.samefile(job.origin.file)
