"""A job of which one task is killed on the way. As a script it runs where no network is, which Ray needs."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread

from tests.bulk.world import MODEL, write_tar
from tests.helpers.tasks import send, wait_for
from tpa_mmseg.bulk import BulkJob, list_parts, segment
from tpa_mmseg.bulk.shard import SegmentShard
from tpa_mmseg.bulk.source import split
from tpa_mmseg.errors import TPAError
from tpa_mmseg.launch import LaunchOptions, State


def prepare(folder: Path, images: dict[str, bytes]) -> None:
    """Writes two tars; one of them is a pipe at first, which holds up who reads it."""
    names = list(images)
    write_tar(folder / 'source/a.tar', {name: images[name] for name in names[::2]})
    write_tar(folder / 'whole.tar', {name: images[name] for name in names[1::2]})
    os.mkfifo(folder / 'source/b.tar')


def run(folder: Path, bank: Path, launcher: str) -> list[SegmentShard]:
    """Starts the job, kills the task that reads the pipe, puts a tar in its place and starts the job again."""
    parts = list_parts([folder / 'source'])
    job = BulkJob(folder / 'out', MODEL, 2, bank=bank)
    shards = [SegmentShard(job, number, share) for number, share in enumerate(split(parts, 2))]
    options = LaunchOptions(launcher, processes=2)

    def kill() -> None:
        wait_for(lambda: [one.state() for one in shards] == [State.DONE, State.RUNNING], 'the shards did not start')
        os.replace(folder / 'whole.tar', folder / 'source/b.tar')
        send(shards[1], signal.SIGKILL)

    killer = Thread(target=kill, daemon=True)
    killer.start()
    # Ray starts it again by itself.
    with suppress(TPAError):
        segment(job, parts, options)
    killer.join()
    written = (shards[0].folder.path / 'summary.json').stat().st_mtime_ns
    assert segment(job, parts, options)['skipped'] == []
    assert (shards[0].folder.path / 'summary.json').stat().st_mtime_ns == written
    return shards


if __name__ == '__main__':
    run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
