"""Who has a run: claims that two processes can never hold at once, on one machine or on many.

A claim is a file ``claim.N`` that only one process can create. Claims are never deleted: whoever takes a run up again,
after a failure or a death, creates the file of the next number, and of all who try at once one succeeds. A living owner
touches its claim now and then; where the owner's machine is this one, the process itself is looked for. A task of a
Slurm array that was requeued knows that its earlier start is over, wherever that was.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

#: Seconds between two signs of life, and after how many a process of another machine counts as dead.
BEAT, SILENCE = 20.0, 300.0


@dataclass(frozen=True)
class Claim:
    """A process's hold on a run.

    Args:
        number: Which attempt it is, from 1 on.
        path: The file.
        machine: Identity of the machine (and of the container, if any) that the process runs on.
        hostname: Its name, for people.
        pid: The process.
        born: When the process was started, as its machine counts: a number may be given to another process later.
        batch: What the process works for. A run is tried once in a batch.
        task: The task of a Slurm job array that the process belongs to; empty outside of one.
        restart: How often Slurm had requeued the task.
    """

    number: int
    path: Path
    machine: str
    hostname: str
    pid: int
    born: str
    batch: str
    task: str = ''
    restart: int = 0

    def alive(self) -> bool:
        """Whether the owner is still at work."""
        if self.of_earlier_start():
            return False
        if self.machine == _machine():
            return _born(self.pid) == self.born
        try:
            return _now(self.path.parent) - self.path.stat().st_mtime < SILENCE
        except OSError:
            return False

    def of_earlier_start(self) -> bool:
        """Whether the owner was this very task of a job array, before Slurm requeued it."""
        task, restart = _slurm_task()
        return bool(task) and self.task == task and self.restart < restart

    def beat(self) -> None:
        """A sign of life."""
        os.utime(self.path)

    def is_latest(self) -> bool:
        """Whether nobody has taken the run over meanwhile, thinking this process dead."""
        latest = last_claim(self.path.parent)
        return latest is not None and latest.number == self.number


def claim(folder: Path, batch: str, after: Claim | None) -> Claim | None:
    """Takes a run.

    Args:
        folder: Folder of the run; made where it is not there.
        batch: What the taker works for.
        after: The latest claim that the taker knows of and has found to be over; None if there is none.

    Returns:
        The claim, or None where somebody else was faster.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = 1 if after is None else after.number + 1
    path = folder / f'claim.{number}'
    pid = os.getpid()
    taken = Claim(number, path, _machine(), socket.gethostname(), pid, _born(pid) or '', batch, *_slurm_task())
    text = json.dumps({key: value for key, value in asdict(taken).items() if key not in ('number', 'path')})
    return taken if _create(path, text) else None


def _create(path: Path, text: str) -> bool:
    """Writes a file unless it is there already. Of several processes one succeeds, on a network disk too."""
    # Written aside and linked, so that nobody reads half a claim; a link to a name that exists fails.
    draft = path.with_name(f'.claim.{uuid.uuid4().hex}')
    draft.write_text(text, encoding='utf-8')
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    except OSError:
        # A disk without hard links: the file is empty for a moment, which readers put up with.
        try:
            with path.open('x', encoding='utf-8') as file:
                file.write(text)
        except FileExistsError:
            return False
    finally:
        draft.unlink()
    return True


def last_claim(folder: Path) -> Claim | None:
    """The latest claim on a run."""
    numbers = [int(path.suffix[1:]) for path in folder.glob('claim.*') if path.suffix[1:].isdigit()]
    if not numbers:
        return None
    path = folder / f'claim.{max(numbers)}'
    try:
        return Claim(max(numbers), path, **json.loads(path.read_text(encoding='utf-8')))
    except (ValueError, TypeError):
        # Being written this moment; should its writer have died over it, it falls silent like any other.
        return Claim(max(numbers), path, machine='', hostname='an unknown machine', pid=0, born='', batch='')


class Heartbeat:
    """Signs of life from a thread for as long as the context lasts. Args: claim."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._over.wait(BEAT):
            try:
                self._claim.beat()
            except FileNotFoundError:
                return
            except OSError:
                # A shared disk that is away for a moment.
                continue

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._over.set()
        self._thread.join()


def _slurm_task() -> tuple[str, int]:
    """The task of a job array that this process belongs to, and how often it was requeued."""
    job = os.environ.get('SLURM_ARRAY_JOB_ID')
    task = f'{job}_{os.environ.get("SLURM_ARRAY_TASK_ID")}' if job else ''
    return task, int(os.environ.get('SLURM_RESTART_COUNT', '0'))


def _machine() -> str:
    """Machine and container: in both a process number means something else."""
    parts = [socket.gethostname()]
    for read in (lambda: Path('/proc/sys/kernel/random/boot_id').read_text().strip(), _process_space):
        try:
            parts.append(read())
        except OSError:
            parts.append('')
    return ' '.join(parts)


def _process_space() -> str:
    return os.readlink('/proc/self/ns/pid')


def _born(pid: int) -> str | None:
    """When a process of this machine was started; None where it is dead. Without /proc only whether it lives."""
    try:
        # The name, in brackets, may hold anything; behind it stand the state and, as the 20th value, the start.
        fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
        return None if fields[0] in 'ZX' else fields[19]
    except OSError:
        pass
    if Path('/proc/self/stat').exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ''


def _now(folder: Path) -> float:
    """The time by the clock of the disk that a folder is on, which need not be this machine's."""
    probe = folder / f'.clock.{uuid.uuid4().hex}'
    try:
        probe.touch()
        return probe.stat().st_mtime
    except OSError:
        return time.time()
    finally:
        probe.unlink(missing_ok=True)
