"""Where runs live and what has become of them. Code that reads results starts with :func:`collect`.

<work dir>/<suite>/<experiment>/<run>/
    config.py         the config that was run, complete
    run.log           what happened
    state.json        progress; after a failure, why it failed
    results.json      a RunResult, once the run is done
    results.old.json  the previous one, if the run was repeated
    lock              locked while a process works on the run; the kernel unlocks it when that process is gone
    pictures/         PNG files, only in the experiment of that name
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from filelock import FileLock

from ..errors import TPAError
from ..io import parse_json, write_json
from .experiments import EXPERIMENTS, plan
from .results import RunResult
from .runs import Run

WORK_DIR = Path('work_dirs/reproduce')


class State(Enum):
    """The state of a run."""

    WAITING = 'waiting'  #: not started
    RUNNING = 'running'  #: a process works on it
    INTERRUPTED = 'interrupted'  #: its process is gone, without results; the next start runs it again
    FAILED = 'failed'  #: it ended with an error, which the folder keeps
    DONE = 'done'  #: it has valid results


@dataclass(frozen=True)
class Progress:
    """Content of ``state.json``.

    Args:
        images: Number of images scored so far.
        total: Number of images to score; 0 if it is not known yet.
        error: Why the run failed, in a sentence.
    """

    images: int = 0
    total: int = 0
    error: str | None = None


class RunFolder:
    """The folder of one run. Args: path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config, self.log = path / 'config.py', path / 'run.log'
        self.results, self.pictures = path / 'results.json', path / 'pictures'
        self._progress, self._lock = path / 'state.json', path / 'lock'

    @classmethod
    def of(cls, run: Run, work_dir: Path) -> RunFolder:
        return cls(work_dir / run.suite / run.experiment / run.name)

    def lock(self, timeout: float = 0.0) -> FileLock:
        """Returns the lock of the run. Entering it raises TimeoutError if another process has it."""
        self.path.mkdir(parents=True, exist_ok=True)
        return FileLock(self._lock, timeout=timeout)

    def locked(self) -> bool:
        """Whether a process works on the run."""
        if not self._lock.exists():
            return False
        try:
            with self.lock():
                return False
        except OSError:  # taken, or a folder of another user
            return True

    def result(self) -> RunResult | None:
        """Returns the results; None if there are none. Raises TPAError if they cannot be read."""
        return RunResult.load(self.results) if self.results.exists() else None

    def progress(self) -> Progress | None:
        """Returns the last note; None if the run was not started."""
        try:
            return Progress(**parse_json(self._progress.read_text(encoding='utf-8')))
        except (OSError, ValueError, TypeError):
            return None

    def note(self, progress: Progress) -> None:
        """Writes down the progress."""
        write_json(self._progress, asdict(progress))

    def reset(self) -> None:
        """Makes the run one that has not been started. Its results are kept under another name."""
        self._progress.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            self.results.replace(self.path / 'results.old.json')


@dataclass(frozen=True)
class RunView:
    """A run as it stands now.

    Args:
        run: The run.
        folder: Its folder, which need not exist yet.
        state: Its state.
        result: Its results; None unless the state is DONE.
        error: Why it failed; None unless the state is FAILED.
    """

    run: Run
    folder: RunFolder
    state: State
    result: RunResult | None = None
    error: str | None = None


def view(run: Run, work_dir: Path) -> RunView:
    """Returns a run as it stands now. Results that cannot be read are a failure."""
    folder = RunFolder.of(run, work_dir)
    try:
        result = folder.result()
    except TPAError as error:
        return RunView(run, folder, State.FAILED, error=str(error))
    if result is not None:
        return RunView(run, folder, State.DONE, result)
    progress = folder.progress()
    if progress is None:
        return RunView(run, folder, State.WAITING)
    if progress.error is not None:
        return RunView(run, folder, State.FAILED, error=progress.error)
    return RunView(run, folder, State.RUNNING if folder.locked() else State.INTERRUPTED)


def collect(
    suite: str = 'paper', work_dir: Path = WORK_DIR, experiments: Sequence[str] = tuple(EXPERIMENTS)
) -> list[RunView]:
    """Returns all runs of some experiments in the order of the paper, including those that have not run yet.

    Args:
        suite: ``'paper'`` or ``'miniature'``.
        work_dir: Folder of all runs.
        experiments: Names of experiments.
    """
    return [view(run, work_dir) for name in experiments for run in plan(name, suite)]
