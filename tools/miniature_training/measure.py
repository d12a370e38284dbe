"""What a host and TPA score on scenes of the miniature world: the whole system, through the real hook."""

from __future__ import annotations

import time
from pathlib import Path

from tpa_mmseg import catalog
from tpa_mmseg.engine.config import load_config, start_runner, use_tpa
from tpa_mmseg.evaluation import HostTPAMetric

from ..demo import config_of, paper_hosts

__all__ = ['HOSTS', 'PAPER_HOSTS', 'config_of', 'measure']

#: All that have a config, with their titles, from the weakest on.
HOSTS = {one.host.name: one.host.title for one in catalog.shipped().combinations('miniature')}
#: Those that the paper puts TPA around.
PAPER_HOSTS = paper_hosts()


def measure(config: Path, work_dir: Path, split: str, size: int, pool: int, seed: int = 0) -> dict:
    """Tests a config on the first scenes of a split, with some of them as the pool.

    Args:
        config: One of ``configs/miniature``.
        work_dir: For the bank and the log.
        split: Name of the split.
        size: Number of scenes.
        pool: Number of scenes in the pool.
        seed: Of the pool.

    Returns:
        ``base`` and ``tpa`` scores, ``gain`` in mIoU, ``covered`` classes and ``seconds`` per scene.
    """
    options = {
        'test_dataloader.dataset.split': split,
        'test_dataloader.dataset.size': size,
        'custom_hooks.0.pool.size': pool,
        'custom_hooks.0.pool.seed': seed,
        'log_level': 'WARNING',
    }
    cfg = load_config(config, work_dir, options)
    use_tpa(cfg, bank=None)
    runner = start_runner(cfg)
    started = time.monotonic()
    runner.test()
    seconds = (time.monotonic() - started) / size
    (metric,) = (metric for metric in runner.test_loop.evaluator.metrics if isinstance(metric, HostTPAMetric))
    return {
        'base': metric.report['host'],
        'tpa': metric.report['tpa'],
        'gain': metric.report['gain']['mIoU'],
        'covered': int(runner.model.bank.covered.sum()),
        'seconds': round(seconds, 4),
    }
