"""ReportHook: what is tested, the final tables, and results.json in the work directory."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmseg.registry import HOOKS
from pydantic import TypeAdapter

from ..clip.names import ClassNames
from ..errors import TPAError
from ..evaluation import HostTPAMetric, bank_caveats, summary, unchanged_caveat, with_bank
from ..hosts import Host
from ..io import write_json
from ..segmentors import TPASegmentor
from .bank_hook import PrototypeBankHook
from .distributed import unwrap
from .provenance import Provenance, provenance

RESULTS = 'results.json'


@HOOKS.register_module()
class ReportHook(Hook):
    """Logs the scores of host and TPA at the end of a test and writes them to a file.

    Requires a :class:`HostTPAMetric` in the evaluator; without one, or if it only writes label maps, it does nothing.

    Args:
        file_name: Name of the file in the work directory.
        settings: What was tested, for the file: see :func:`refuse_other_settings`.
    """

    # After mmengine's LoggerHook, so that the tables are the last thing in the log.
    priority = 'VERY_LOW'

    def __init__(self, file_name: str = RESULTS, settings: dict | None = None) -> None:
        self.file_name, self.settings = file_name, settings
        self._started = time.monotonic()

    def before_run(self, runner: Runner) -> None:
        """Starts the clock: the bank is built after this."""
        self._started = time.monotonic()

    def before_test(self, runner: Runner) -> None:
        """Says what is tested. Checks that a host without TPA has the classes that are scored; else the bank's hook."""
        model, dataset = unwrap(runner.model), runner.test_dataloader.dataset
        if isinstance(model, Host):
            model.check_classes(dataset.metainfo)
        host = model.host if isinstance(model, TPASegmentor) else model
        name = type(host).__name__ + (' with TPA' if isinstance(model, TPASegmentor) else '')
        classes = ClassNames(tuple((title,) for title in dataset.metainfo['classes']))
        runner.logger.info(f'Testing {name} on {len(dataset)} images. {classes}. Log: {runner.log_dir}')
        for text in _caveats(model):
            runner.logger.warning(text)

    def after_test_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        """Logs and writes the report, on rank 0 only."""
        reports = [m.report for m in runner.test_loop.evaluator.metrics if isinstance(m, HostTPAMetric) and m.report]
        if not is_main_process() or not reports:
            return
        model = unwrap(runner.model)
        report = {
            **with_bank(reports[0], getattr(model, 'bank', None), getattr(model, 'bank_file', None)),
            'caveats': _caveats(model, reports[0].get('changed')),
            'seconds_per_image': _seconds_per_image(runner),
            'config': _config_name(runner),
            'settings': self.settings,
            'provenance': self._provenance(runner),
        }
        path = Path(runner.work_dir) / self.file_name
        write_json(path, report)
        level = logging.WARNING if report['caveats'] else logging.INFO
        runner.logger.log(level, f'\n{summary(report)}\nWritten to {path}')

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


def refuse_other_settings(work_dir: str, settings: Mapping) -> None:
    """Raises TPAError if the work directory has results of other settings, which would be overwritten.

    Args:
        work_dir: The work directory.
        settings: ``options`` (of the command line), and anything else that tells two tests apart.
    """
    path = Path(work_dir) / RESULTS
    try:
        old = json.loads(path.read_text(encoding='utf-8')).get('settings')
    except (OSError, ValueError, AttributeError):
        return
    new = json.loads(json.dumps(settings, default=str))
    if old is not None and old != new:
        raise TPAError(
            f'{path} has the results of other settings ({_described(old)}; these are: {_described(new)}): choose '
            'another --work-dir, or move the file away.'
        )


def _described(settings: Mapping) -> str:
    options = [f'{key}={value}' for key, value in (settings.get('options') or {}).items()]
    others = [f'{key} {value}' for key, value in settings.items() if key != 'options' and value is not None]
    return ', '.join([*others, *(options or ['no options'])])


def _caveats(model: object, changed: float | None = None) -> list[str]:
    """What makes the result of a model worthless. Args: changed: Share of pixels that TPA changed, once known."""
    if isinstance(model, Host):
        return model.caveats()
    if not isinstance(model, TPASegmentor):
        return []
    found = model.host.caveats()
    if model.bank is not None:
        found += bank_caveats(model.bank.coverage(), model.anchor_rule)
    if changed == 0 and not found:
        found.append(unchanged_caveat(model.fusion, model.anchor_rule, model.num_classes))
    return found


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
