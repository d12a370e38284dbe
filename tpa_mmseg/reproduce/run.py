"""RunTask: a run as the launcher starts it, and what each experiment measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import mmengine.dist as dist
import torch

from ..engine.config import checked_config
from ..engine.data_check import missing_data
from ..errors import TPAError
from ..launch import Task
from ..weights.needs import needs
from .context import RunContext
from .cost import cost_run
from .experiments import EXPERIMENTS, planned_images, suite_of
from .folders import RunFolder
from .labels import overlap_run, repetition_run
from .pictures import anchors_run, pictures_run
from .results import RunResult
from .runs import Run
from .scoring import score_run

_OTHERS: dict[str, Callable[[RunContext], RunResult]] = {
    'repetition': repetition_run,
    'overlap': overlap_run,
    'cost': cost_run,
    'pictures': pictures_run,
    'anchors': anchors_run,
}


@dataclass(frozen=True)
class RunTask(Task):
    """A run for the launcher.

    Args:
        run: The run.
        work_dir: Folder of all runs.
        cfg_options: Settings that replace those of the config.
    """

    run: Run
    work_dir: Path
    cfg_options: dict = field(default_factory=dict)

    @property
    def folder(self) -> RunFolder:
        return RunFolder.of(self.run, self.work_dir)

    @property
    def name(self) -> str:
        return f'{self.run.experiment} {self.run.name}'

    @property
    def size(self) -> int:
        return planned_images(self.run)

    @property
    def alone(self) -> bool:
        return self.run.experiment == 'cost'

    @property
    def shared(self) -> bool:
        return self.run.experiment in ('overlap', *EXPERIMENTS.keys() - _OTHERS.keys())

    @property
    def megabytes(self) -> float:
        """Banks of at most some hundred classes and 1024 features; pictures."""
        return 2.0 * len(self.run.settings) + 20.0 * (self.run.experiment == 'pictures')

    def finished(self) -> bool:
        return self.folder.result() is not None

    def work(self) -> None:
        folder = self.folder
        result = measure(self.run, folder, self.cfg_options)
        if dist.is_main_process():
            # Results are written last and atomically: a run that has them is done.
            result.save(folder.results)

    def reset(self) -> None:
        self.folder.reset()

    def missing(self) -> list[str]:
        """Names the data and weights that the run needs and that are not on this machine."""
        suite = suite_of(self.run.suite)
        try:
            cfg = checked_config(suite.config(self.run), options=self.cfg_options)
        except TPAError as error:
            return [str(error)]
        encoders = [suite.encoders.get(setting.encoder) for setting in self.run.settings]
        # Labels alone need no model.
        models = [] if self.run.experiment == 'repetition' else [cfg.model, *encoders]
        absent = [need.source for need in needs(models) if need.source.locate() is None]
        weights = [f'{one.title} ({one.megabytes:,} MB)' if one.megabytes else one.title for one in absent]
        places = filter(None, [missing_data(cfg.test_dataloader.dataset)])
        return list(dict.fromkeys([*map(str, places), *weights]))


@torch.no_grad()
def measure(run: Run, folder: RunFolder, cfg_options: dict | None = None) -> RunResult:
    """Returns what a run of any experiment measures.

    Args:
        run: The run.
        folder: Where its config, pictures and progress go.
        cfg_options: Settings that replace those of the config.
    """
    context = RunContext(run, folder, cfg_options)
    return _OTHERS.get(run.experiment, score_run)(context)
