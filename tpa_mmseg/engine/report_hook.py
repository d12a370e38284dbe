"""ReportHook: the final tables, and results.json in the work directory."""

from __future__ import annotations

from pathlib import Path

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmseg.registry import HOOKS

from ..evaluation import HostTPAMetric, summary
from ..hosts import Host
from ..io import write_json
from .distributed import unwrap


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
        report = {
            **with_bank(reports[0], _bank_summary(runner)),
            'seconds_per_image': _seconds_per_image(runner),
            'config': _config_name(runner),
        }
        path = Path(runner.work_dir) / self.file_name
        write_json(path, report)
        runner.logger.info(f'\n{summary(report)}\nWritten to {path}')


def with_bank(report: dict, bank: dict | None) -> dict:
    """Adds the bank to a report: its anchors to their classes, the rest as ``bank``.

    Args:
        report: From :class:`HostTPAMetric`; it is not changed.
        bank: From the model's ``bank_summary``, or None without a bank.
    """
    bank = dict(bank) if bank is not None else None
    anchors = bank.pop('anchors_per_class', None) if bank is not None else None
    per_class = report['per_class']
    if anchors is not None:
        per_class = [{**entry, 'anchors': int(count)} for entry, count in zip(per_class, anchors, strict=True)]
    return {**report, 'per_class': per_class, 'bank': bank}


def _bank_summary(runner: Runner) -> dict | None:
    model = unwrap(runner.model)
    return model.bank_summary() if hasattr(model, 'bank_summary') else None


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
