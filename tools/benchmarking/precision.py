"""What float16 and bfloat16 change: labels and scores of the miniature world's hosts against those in float32."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from mmengine.config import Config
from torch import Tensor

from tpa_mmseg.engine.config import load_config, start_runner, use_tpa
from tpa_mmseg.evaluation import HostTPAMetric

from ..demo import config_of
from .report import Table

PRECISIONS = ('float32', 'float16', 'bfloat16')
#: Data samples' names of the labels of the host and of TPA.
_LABELS = {'host': 'host_sem_seg', 'tpa': 'pred_sem_seg'}


def set_precision(model: dict, precision: str) -> None:
    """Sets the precision of every network in the config of a TPASegmentor."""
    host = model['host']
    for part in (host['clip'], host.get('proxy'), host.get('sam'), model['encoder']):
        if part is not None:
            part['precision'] = precision


def measure_precisions(hosts: Sequence[str], size: int, pool: int) -> list[dict]:
    """Tests every host in every precision on the first validation scenes.

    Returns:
        An entry for each host and precision: mIoU of the host and of TPA, and the share of pixels whose label is not
        that of float32.
    """
    entries = []
    for host in hosts:
        exact: dict[str, Tensor] = {}
        for precision in PRECISIONS:
            scores, labels = _run(host, precision, size, pool)
            exact = exact or labels
            changed = {name: (labels[name] != exact[name]).double().mean().item() for name in labels}
            entries.append({'host': host, 'precision': precision, 'miou': scores, 'changed_labels': changed})
    return entries


def _run(host: str, precision: str, size: int, pool: int) -> tuple[dict[str, float], dict[str, Tensor]]:
    """mIoU of host and TPA, and all their labels."""
    with tempfile.TemporaryDirectory() as folder:
        runner = start_runner(_config(host, precision, size, pool, Path(folder)))
        runner.test()
        (metric,) = (metric for metric in runner.test_loop.evaluator.metrics if isinstance(metric, HostTPAMetric))
        scores = {name: metric.report[name]['mIoU'] for name in _LABELS}
        samples = [sample for data in runner.test_dataloader for sample in runner.model.test_step(data)]
    labels = {
        name: torch.cat([getattr(sample, key).data.flatten() for sample in samples]) for name, key in _LABELS.items()
    }
    return scores, labels


def _config(host: str, precision: str, size: int, pool: int, folder: Path) -> Config:
    options = {
        'test_dataloader.dataset.split': 'val',
        'test_dataloader.dataset.size': size,
        'custom_hooks.0.pool.size': pool,
        'log_level': 'WARNING',
    }
    cfg = load_config(config_of(host), folder, options)
    set_precision(cfg.model, precision)
    use_tpa(cfg, bank=None)
    return cfg


def precision_table(entries: list[dict]) -> Table:
    """Returns one line per host and reduced precision."""
    exact = {entry['host']: entry['miou'] for entry in entries if entry['precision'] == 'float32'}
    rows = [
        [
            entry['host'],
            entry['precision'],
            *(
                f'{value:{form}}'
                for name in _LABELS
                for value, form in (
                    (exact[entry['host']][name], '.2f'),
                    (entry['miou'][name], '.2f'),
                    (100 * entry['changed_labels'][name], '.3f'),
                )
            ),
        ]
        for entry in entries
        if entry['precision'] != 'float32'
    ]
    columns = (
        'Host',
        'Precision',
        *('Host, float32', 'Host', 'Labels changed, %'),
        *('TPA, float32', 'TPA', 'Labels changed, %'),
    )
    return columns, rows, 'llrrrrrr'
