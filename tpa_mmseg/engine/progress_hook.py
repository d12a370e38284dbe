"""ProgressHook: how far a test is, how fast it goes and how long it will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack

from mmengine.dist import get_world_size, is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmseg.registry import HOOKS
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm


@HOOKS.register_module()
class ProgressHook(Hook):
    """A progress bar over the test images of all ranks, on rank 0 and stderr.

    In a log file, where a bar would be thousands of lines, it is one line now and then.

    Args:
        description: What is going on.
        interval: Seconds between two lines where stderr is not a terminal.
    """

    def __init__(self, description: str = 'Testing', interval: float = 30.0) -> None:
        self.description = description
        self.interval = interval
        self._cleanup = ExitStack()

    def before_test_epoch(self, runner: Runner) -> None:
        """Starts the bar."""
        if not is_main_process():
            return
        self._cleanup.close()
        self._done, self._total = 0, len(runner.test_dataloader.dataset)
        self._started = self._last_line = time.monotonic()
        self._bar = None
        if sys.stderr.isatty():
            # Log lines are written above the bar instead of into it.
            self._cleanup.enter_context(logging_redirect_tqdm([runner.logger]))
            bar = tqdm(total=self._total, desc=self.description, unit=' images', file=sys.stderr, dynamic_ncols=True)
            self._bar = self._cleanup.enter_context(bar)

    def after_test_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict | None = None, outputs: Sequence | None = None
    ) -> None:
        """Moves the bar, and closes it with the last batch so that it is not in the way of any table."""
        if not is_main_process():
            return
        # Every rank has done as much; the sampler repeats a few images so that all ranks have the same number.
        images = min(len(outputs) * get_world_size(), self._total - self._done)
        self._done += images
        is_last = batch_idx + 1 == len(runner.test_dataloader)
        if self._bar is not None:
            self._bar.update(images)
        elif is_last or time.monotonic() - self._last_line >= self.interval:
            self._last_line = time.monotonic()
            print(self._line(), file=sys.stderr, flush=True)
        if is_last:
            self._cleanup.close()

    def _line(self) -> str:
        return tqdm.format_meter(
            self._done,
            self._total,
            time.monotonic() - self._started,
            prefix=self.description,
            unit=' images',
            bar_format='{desc}: {n_fmt} of {total_fmt} images, {rate_fmt}, {elapsed} gone, {remaining} left',
        )
