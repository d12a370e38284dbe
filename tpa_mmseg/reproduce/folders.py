"""Where runs live and what has become of them. Code that reads results starts with :class:`~.sources.Source`.

<work dir>/<suite>/<experiment>/<run>/
    config.py         the config that was run, complete
    banks/            the bank of every setting, which the next attempt uses again
    run.log           what happened
    state.json        progress; after a failure, why it failed
    results.json      a RunResult, once the run is done
    results.old.json  the previous one, if the run was repeated
    lock              locked while a process works on the run; the kernel unlocks it when that process is gone
    pictures/         PNG files, only in the experiment of that name
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import TPAError
from ..launch import State, TaskFolder
from .results import RunResult
from .runs import Run

WORK_DIR = Path('work_dirs/reproduce')


class RunFolder(TaskFolder):
    """The folder of one run. Args: path."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.config, self.banks = path / 'config.py', path / 'banks'
        self.results, self.pictures = path / 'results.json', path / 'pictures'

    @classmethod
    def of(cls, run: Run, work_dir: Path) -> RunFolder:
        return cls(work_dir / run.suite / run.experiment / run.name)

    def result(self) -> RunResult | None:
        """Returns the results; None if there are none. Raises TPAError if they cannot be read."""
        return RunResult.load(self.results) if self.results.exists() else None

    def reset(self) -> None:
        """Makes the run one that has not been started. Its results are kept under another name."""
        self.forget()
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
    state, why = folder.unfinished() if result is None else (State.DONE, None)
    return RunView(run, folder, state, result, why)
