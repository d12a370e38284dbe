"""What a host and TPA score on scenes of the miniature world: the whole system, through the real hook."""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path

from tpa_mmseg import catalog
from tpa_mmseg.catalog import Row
from tpa_mmseg.engine.config import load_config, start_runner, use_tpa
from tpa_mmseg.evaluation import HostTPAMetric

_CATALOG = catalog.shipped()
_SUITE = _CATALOG.suites['miniature'].own_images
#: All hosts that have a config, with their names for people, from the weakest on.
HOSTS = {
    one.host.name: one.host.title
    for one in _CATALOG.combinations('miniature')
    if one.variant is None and one.backbone.name == _SUITE['backbone']
}
#: Those that the paper puts TPA around.
PAPER_HOSTS = {name: title for name, title in HOSTS.items() if _CATALOG.hosts[name].paper}


def config_of(host: str) -> Path:
    """The config of a host in the miniature world."""
    return _CATALOG.config(Row(host, '', _SUITE['backbone']), _SUITE['plain'])


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
    cfg = load_config(Namespace(config=config, work_dir=str(work_dir), cfg_options=options, launcher='none'))
    use_tpa(cfg, bank=None)
    runner = start_runner(cfg)
    started = time.monotonic()
    runner.test()
    seconds = (time.monotonic() - started) / size
    (metric,) = (metric for metric in runner.test_loop.evaluator.metrics if isinstance(metric, HostTPAMetric))
    return {
        'base': metric.report['host'],
        'tpa': metric.report['tpa'],
        'gain': metric.report['delta']['mIoU'],
        'covered': runner.model.bank_summary()['classes_covered'],
        'seconds': round(seconds, 4),
    }
