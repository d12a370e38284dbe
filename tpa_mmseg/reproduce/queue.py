"""Takes runs one after the other, so that no two processes ever have the same one, and none is tried twice in vain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from .claims import Claim, claim, last_claim
from .layout import Progress, RunFolder, State
from .runs import Run


def take(runs: Sequence[Run], work_dir: Path, batch: str) -> Iterator[tuple[Run, RunFolder, Claim]]:
    """Runs that this process now has, until there is nothing left to take.

    A run that failed or was interrupted is taken up again, but once in a batch: whoever starts anew means it, while the
    processes of one start would only fail the same way.

    Args:
        runs: What there is to do, in the order of preference.
        work_dir: Where the runs are.
        batch: What the process works for.
    """
    # A requeued task goes on with its own run, which others would take for dead and leave.
    for run in sorted(runs, key=lambda run: not _had_before(run, work_dir)):
        folder = RunFolder.of(run, work_dir)
        state, last = folder.state_and_claim()
        if not free(folder, state, last, batch):
            continue
        taken = claim(folder.path, batch, last)
        # Another process may have been faster, or have finished the run between the two looks.
        if taken is not None and not folder.results.exists():
            yield run, folder, taken


def _had_before(run: Run, work_dir: Path) -> bool:
    """Whether an earlier start of this Slurm task had the run last."""
    last = last_claim(RunFolder.of(run, work_dir).path)
    return last is not None and last.of_earlier_start()


def free(folder: RunFolder, state: State, last: Claim | None, batch: str) -> bool:
    """Whether a run may be taken. A death within this batch is noted as a failure."""
    if state is State.INTERRUPTED and last.batch == batch:
        note_death(folder, last)
        return False
    if state is State.FAILED:
        return last.batch != batch
    return state in (State.WAITING, State.INTERRUPTED)


def note_death(folder: RunFolder, last: Claim) -> None:
    """Writes down that a process ended without a word."""
    folder.note(
        Progress(
            last.number,
            error=f'Process {last.pid} on {last.hostname} ended without a word: it was killed, or the machine had too '
            f'little memory. The end of {folder.log} may say more.',
        )
    )
