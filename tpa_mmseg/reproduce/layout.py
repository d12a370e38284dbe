"""Where runs live and what has become of them. Whoever reads results starts with :func:`collect`.

<work dir>/<suite>/<experiment>/<run>/
    config.py       the config that was run, complete
    run.log         what happened
    state.json      how far it is; after a failure, why
    results.json    a RunResult, once the run is done
    results.old.json  that of the time before, where the run was repeated
    claim.N         who has (or had) it, see claims.py
    pictures/       PNG files, only in the experiment of that name
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from ..errors import TPAError
from ..io import write_json
from .claims import Claim, last_claim
from .experiments import EXPERIMENTS, plan
from .results import RunResult
from .runs import Run

WORK_DIR = Path('work_dirs/reproduce')


class State(Enum):
    """What has become of a run."""

    WAITING = 'waiting'  #: nobody has started it
    RUNNING = 'running'  #: a living process has it
    INTERRUPTED = 'interrupted'  #: its process is gone without a result; the next start takes it up again
    FAILED = 'failed'  #: it ended with an error, which the folder keeps
    DONE = 'done'  #: it has results


@dataclass(frozen=True)
class Progress:
    """Content of ``state.json``, written by the owner of a claim.

    Args:
        claim: Number of the claim.
        images: Images scored so far.
        total: Images to score.
        seconds: How long that took, without loading models.
        error: Why the run failed, in a sentence; None while it has not.
        over: Whether the owner has finished the run and gone on to others.
        time: When this was written, in seconds since 1970.
    """

    claim: int
    images: int = 0
    total: int = 0
    seconds: float = 0.0
    error: str | None = None
    over: bool = False
    time: float = 0.0


class RunFolder:
    """The folder of one run. Args: path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config, self.log = path / 'config.py', path / 'run.log'
        self.results, self.pictures = path / 'results.json', path / 'pictures'
        self._progress = path / 'state.json'

    @classmethod
    def of(cls, run: Run, work_dir: Path) -> RunFolder:
        return cls(work_dir / run.suite / run.experiment / run.name)

    def state(self) -> State:
        """What has become of the run."""
        return self.state_and_claim()[0]

    def state_and_claim(self) -> tuple[State, Claim | None]:
        """The state, and the claim that it is judged by."""
        claim = last_claim(self.path)
        if self.results.exists():
            return State.DONE, claim
        if claim is None:
            return State.WAITING, None
        progress = self.progress()
        if progress is not None and progress.claim == claim.number:
            if progress.error is not None:
                return State.FAILED, claim
            if progress.over:
                # It was done, and its results were taken away: whether its owner lives does not matter.
                return State.WAITING, claim
        return (State.RUNNING if claim.alive() else State.INTERRUPTED), claim

    def progress(self) -> Progress | None:
        """How far the latest attempt is; None before its first word."""
        try:
            return Progress(**json.loads(self._progress.read_text(encoding='utf-8')))
        except (OSError, ValueError, TypeError):
            return None

    def note(self, progress: Progress) -> None:
        """Writes down how far the run is."""
        write_json(self._progress, {**asdict(progress), 'time': time.time()})

    def set_aside(self) -> None:
        """Makes a run that is done one that is to be run again. Its results stay, under another name."""
        with suppress(FileNotFoundError):
            self.results.replace(self.path / 'results.old.json')


@dataclass(frozen=True)
class RunView:
    """A run as it stands now.

    Args:
        run: The run.
        folder: Its folder, which need not exist yet.
        state: What has become of it.
        result: Its results; None unless the state is DONE.
        error: Why it failed; None unless the state is FAILED.
        damaged: Whether that is because there are results which cannot be read.
    """

    run: Run
    folder: RunFolder
    state: State
    result: RunResult | None = None
    error: str | None = None
    damaged: bool = False


def view(run: Run, work_dir: Path) -> RunView:
    """A run as it stands now. Results that cannot be read are a failure that says so."""
    folder = RunFolder.of(run, work_dir)
    state = folder.state()
    if state is State.DONE:
        try:
            return RunView(run, folder, state, result=RunResult.load(folder.results))
        except TPAError as error:
            return RunView(run, folder, State.FAILED, error=str(error), damaged=True)
    if state is State.FAILED:
        return RunView(run, folder, state, error=folder.progress().error)
    return RunView(run, folder, state)


def collect(
    suite: str = 'paper', work_dir: Path = WORK_DIR, experiments: Sequence[str] = tuple(EXPERIMENTS)
) -> list[RunView]:
    """All runs of some experiments in the order of the paper, those that have not run yet among them.

    Args:
        suite: ``'paper'`` or ``'miniature'``.
        work_dir: Where the runs are.
        experiments: Names of experiments.
    """
    return [view(run, work_dir) for name in experiments for run in plan(name, suite)]
