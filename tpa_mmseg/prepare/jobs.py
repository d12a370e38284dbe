"""Jobs of a preparation: one per file, run in parallel, with a progress bar."""

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
from .sources import Member, check_regular

WORKERS = min(8, os.cpu_count() or 1)

# Recipe of files that are copied unchanged.
COPY = 'copy'

T = TypeVar('T')


@dataclass(frozen=True)
class InMemory:
    """An origin that has been read already.

    Args:
        value: Its content.
        name: Its name in error messages.
    """

    value: Any
    name: str
    file: Path | None = None
    place: int = 0

    def read(self) -> Any:
        """Returns the content."""
        return self.value

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Job:
    """One file to write.

    Args:
        target: Its path below the output folder.
        origin: What it is made from.
        convert: Makes its content from that of the origin; None to copy it. The message of a ValueError follows the
            name of the origin.
        recipe: Name of the conversion: a file that was made by another recipe is made again.
    """

    target: str
    origin: Member | InMemory
    convert: Callable[[Any], bytes] | None = None
    recipe: str = COPY


def run(jobs: Sequence[Job], output: Output, workers: int = WORKERS, symlink: bool = False) -> int:
    """Runs all jobs that are not done yet.

    Args:
        jobs: The jobs.
        output: Folder for the files.
        workers: Number of threads that convert and write. Most of their time, spent on compressing images and waiting
            for the disk, is outside of Python's lock. The sources are read by one thread, in their own order.
        symlink: Whether to symlink files of folders that would be copied unchanged.

    Returns:
        The number of files that were written now.
    """
    pending = [job for job in jobs if not output.has(job.target, job.recipe) and not _in_place(job, output.folder)]
    # A compressed archive can only be read from beginning to end.
    pending.sort(key=lambda job: job.origin.place)
    output.sweep(job.target for job in pending)

    def finish(job: Job, content: Any) -> Job:
        if symlink and _is_linkable(job):
            check_regular(job.origin.file)
            output.symlink(job.target, job.origin.file)
        else:
            output.write(job.target, _converted(job, content))
        return job

    def read() -> Iterator[tuple[Job, Any]]:
        for job in pending:
            yield job, None if symlink and _is_linkable(job) else job.origin.read()

    for job in in_parallel(finish, read(), len(pending), workers, 'Writing'):
        output.record(job.target, job.recipe)
    return len(pending)


def in_parallel(
    function: Callable[..., T], arguments: Iterable[tuple], total: int, workers: int, description: str
) -> Iterator[T]:
    """Calls a function in several threads and yields its results in order, with a progress bar on stderr.

    Only a few arguments are taken ahead, because they may be large. The first exception ends it.
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
    except MemoryError as error:
        raise TPAError(f'Not enough memory to convert {job.origin}. Free some, or reduce --workers.') from error


def _is_linkable(job: Job) -> bool:
    return job.convert is None and job.origin.file is not None


def _in_place(job: Job, folder: Path) -> bool:
    """Returns whether a file is in its place already, because the output folder is also the source."""
    target = folder / job.target
    return _is_linkable(job) and target.is_file() and target.samefile(job.origin.file)
