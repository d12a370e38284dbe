"""ReportHook: the final tables, and results.json in the work directory."""

from __future__ import annotations

import time
from pathlib import Path

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmseg.registry import HOOKS
from pydantic import TypeAdapter

from ..evaluation import HostTPAMetric, summary, with_bank
from ..hosts import Host
from ..io import write_json
from .bank_hook import PrototypeBankHook
from .distributed import unwrap
from .provenance import Provenance, provenance


@HOOKS.register_module()
class ReportHook(Hook):
    """Logs the scores of host and TPA at the end of a test and writes them to a file.

    Requires a :class:`HostTPAMetric` in the evaluator; without one, or if it only writes label maps, it does nothing.

    Args:
        file_name: Name of the file in the work directory.
    """

    # After mmengine's LoggerHook, so that the tables are the last thing in the log.
    priority = 'VERY_LOW'

    def __init__(self, file_name: str = 'results.json') -> None:
        self.file_name = file_name
        self._started = time.monotonic()

    def before_run(self, runner: Runner) -> None:
        """Starts the clock: the bank is built after this."""
        self._started = time.monotonic()

    def before_test(self, runner: Runner) -> None:
        """Checks that a host without TPA has the classes that are scored; with TPA the bank's hook does."""
        model = unwrap(runner.model)
        if isinstance(model, Host):
            model.check_classes(runner.test_dataloader.dataset.metainfo)

    def after_test_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        """Logs and writes the report, on rank 0 only."""
        reports = [m.report for m in runner.test_loop.evaluator.metrics if isinstance(m, HostTPAMetric) and m.report]
        if not is_main_process() or not reports:
            return
        model = unwrap(runner.model)
        report = {
            **with_bank(reports[0], getattr(model, 'bank', None), getattr(model, 'bank_file', None)),
            'seconds_per_image': _seconds_per_image(runner),
            'config': _config_name(runner),
            'provenance': self._provenance(runner),
        }
        path = Path(runner.work_dir) / self.file_name
        write_json(path, report)
        runner.logger.info(f'\n{summary(report)}\nWritten to {path}')

    def _provenance(self, runner: Runner) -> dict:
        model, seeds = unwrap(runner.model), {'runner': runner.seed}
        for hook in runner.hooks:
            if isinstance(hook, PrototypeBankHook):
                seeds['pool'] = hook.pool.seed
        bank = getattr(model, 'bank', None)
        banks = {} if bank is None else {'full': bank}
        seconds = time.monotonic() - self._started
        found = provenance(model, runner.cfg, runner.test_dataloader.dataset, banks, seeds, seconds)
        return TypeAdapter(Provenance).dump_python(found, mode='json')


def _seconds_per_image(runner: Runner) -> float:
    """Returns the time from one test batch to the next, including loading, divided by the batch size."""
    # Measured by MMEngine's IterTimerHook, on every rank separately.
    seconds = runner.message_hub.get_scalar('test/time').mean()
    return round(float(seconds) / (runner.test_dataloader.batch_size or 1), 4)


def _config_name(runner: Runner) -> str | None:
    """Returns the config's path, relative to the current directory if it is below it."""
    if runner.cfg.filename is None:
        return None
    path = Path(runner.cfg.filename).resolve()
    here = Path.cwd().resolve()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
