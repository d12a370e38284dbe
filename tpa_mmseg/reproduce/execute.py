"""Executes a run of any experiment."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .context import RunContext
from .cost import cost_run
from .layout import RunFolder
from .overlap import overlap_run
from .pictures import pictures_run
from .repetition import repetition_run
from .results import RunResult
from .runs import Run
from .scoring import score_run

_OTHERS: dict[str, Callable[[RunContext], RunResult]] = {
    'repetition': repetition_run,
    'overlap': overlap_run,
    'cost': cost_run,
    'pictures': pictures_run,
}


@torch.no_grad()
def execute(run: Run, folder: RunFolder, claim: int = 0, cfg_options: dict | None = None) -> RunResult:
    """Executes a run.

    Args:
        run: The run.
        folder: Where its config and pictures go, and how far it is.
        claim: Number of the claim that it is executed under.
        cfg_options: Settings that replace those of the config.
    """
    context = RunContext(run, folder, claim, cfg_options)
    return _OTHERS.get(run.experiment, score_run)(context)
