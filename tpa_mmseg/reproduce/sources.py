"""Where results are read from: the folders of runs, or one file that holds the results of many."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..errors import TPAError
from ..io import atomic_write
from .experiments import EXPERIMENTS, plan
from .folders import RunFolder, RunView, State, view
from .results import RunResult, read_limited
from .runs import Run
from .suite import SUITES

#: Endings of collected files: JSON lines, Parquet.
FORMATS = ('.jsonl', '.parquet')
_LARGEST = 1 << 30

Key = tuple[str, str, str]


class Source:
    """Results in a work directory, or in a file that ``collect`` wrote. Args: path."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._results = _read(self.path) if self.path.suffix in FORMATS else None
        #: Where a report goes beside the results.
        self.folder = self.path if self._results is None else self.path.parent

    def view(self, run: Run) -> RunView:
        """Returns a run as it stands here. Pictures of a file's runs are shown if the folders are beside it."""
        if self._results is None:
            return view(run, self.path)
        result = self._results.get((run.suite, run.experiment, run.name))
        state = State.WAITING if result is None else State.DONE
        return RunView(run, RunFolder.of(run, self.folder), state, result)

    def views(self, suite: str, experiments: Iterable[str] = tuple(EXPERIMENTS)) -> list[RunView]:
        """Returns all runs of some experiments in the order of the paper, including those that have not run yet."""
        return [self.view(run) for name in experiments for run in plan(name, suite, comparisons=True)]

    @property
    def unplanned(self) -> int:
        """How many results of a file are of runs that this version does not plan, and are therefore not shown."""
        if self._results is None:
            return 0
        return len(self._results) - sum(view.result is not None for suite in SUITES for view in self.views(suite))


def write_results(path: Path, results: Sequence[RunResult]) -> None:
    """Writes results into one file: JSON lines, or Parquet with the results beside columns to select by."""
    if path.suffix not in FORMATS:
        raise TPAError(f'{path} must end in {" or ".join(FORMATS)}: the ending chooses the format.')
    lines = [result.to_json() for result in results]
    with atomic_write(path) as file:
        if path.suffix == '.jsonl':
            file.write(b''.join(line + b'\n' for line in lines))
            return
        import pandas

        keys = [(result.suite, result.experiment, result.run) for result in results]
        frame = pandas.DataFrame(keys, columns=['suite', 'experiment', 'run'])
        frame.assign(result=[line.decode() for line in lines]).to_parquet(file, index=False)


def _read(path: Path) -> dict[Key, RunResult]:
    """Returns the results of a file. Raises TPAError for what is not one, with the number of the line."""
    content = read_limited(path, _LARGEST)
    lines = content.splitlines() if path.suffix == '.jsonl' else _parquet_lines(content, path)
    found: dict[Key, RunResult] = {}
    for number, line in enumerate(lines, start=1):
        place = f'Line {number} of {path}'
        result = RunResult.parse(line, place)
        key = result.suite, result.experiment, result.run
        if key in found:
            raise TPAError(f'{place} has a second result of {" ".join(key)}: keep one of them.')
        found[key] = result
    return found


def _parquet_lines(content: bytes, path: Path) -> list[str]:
    import pyarrow
    import pyarrow.parquet

    try:
        column = pyarrow.parquet.read_table(io.BytesIO(content), columns=['result'])['result']
        return column.cast(pyarrow.string()).drop_null().to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise TPAError(f'{path} is not a readable file of results ({reason}): collect them again.') from error
