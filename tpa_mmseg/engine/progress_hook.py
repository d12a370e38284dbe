"""ProgressHook: how much of a test is done, how fast it is and how long it will take."""

from __future__ import annotations

import atexit
from collections.abc import Sequence

from mmengine.dist import get_world_size, is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmseg.registry import HOOKS

from ..console import ProgressBar
from ..options import NotNegative


@HOOKS.register_module()
class ProgressHook(Hook):
    """Shows a progress bar over the test images of all ranks, on rank 0 and stderr.

    If stderr is not a terminal, it prints a line now and then instead.

    Args:
        description: Name of the task.
        interval: Seconds between two lines if stderr is not a terminal.
    """

    def __init__(self, description: str = 'Testing', interval: NotNegative = 30.0) -> None:
        self.description = description
        self.interval = interval
        self._bar: ProgressBar | None = None
        # After an error nobody calls the hook, and a bar that is not stopped hides the terminal's cursor.
        atexit.register(self._stop, finished=False)

    def before_test_iter(self, runner: Runner, batch_idx: int, data_batch: dict | None = None) -> None:
        """Starts the bar with the first batch: the loader's workers, forked before, must not inherit it."""
        if batch_idx == 0 and is_main_process():
            self._stop(finished=False)
            total = len(runner.test_dataloader.dataset)
            self._bar = ProgressBar(self.description, total, interval=self.interval, logger=runner.logger).start()

    def after_test_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict | None = None, outputs: Sequence | None = None
    ) -> None:
        """Advances the bar, and stops it with the last batch, before any table is printed."""
        if self._bar is None:
            return
        # Every rank has done as much; the sampler repeats a few images so that all ranks have the same number.
        self._bar.advance(min(len(outputs) * get_world_size(), self._bar.total - self._bar.done))
        if batch_idx + 1 == len(runner.test_dataloader):
            self._stop()

    def _stop(self, finished: bool = True) -> None:
        if self._bar is not None:
            self._bar.stop(finished)
            self._bar = None
