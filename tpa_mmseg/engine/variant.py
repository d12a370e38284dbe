"""Variant: what a command line makes of a config, and how two tests of a config are told apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mmengine.config import Config

from .config import use_checkpoint, use_host_alone, use_tpa

#: Folder in the work directory for results of the host alone.
NO_TPA = 'no-tpa'


@dataclass(frozen=True)
class Variant:
    """A test of a config.

    Args:
        options: Dotted key -> value, which the config has already.
        tpa: Whether TPA is in it; otherwise the host is tested alone.
        bank: File of a bank to use instead of building one.
        checkpoint: Weights of a segmentor that is the host.
    """

    options: Mapping = field(default_factory=dict)
    tpa: bool = True
    bank: str | None = None
    checkpoint: str | None = None

    def of(self, cfg: Config) -> Config:
        """Changes a config as the variant says, and returns it."""
        if self.checkpoint is not None:
            use_checkpoint(cfg, self.checkpoint)
        if self.tpa:
            use_tpa(cfg, self.bank)
        elif cfg.model.type == 'TPASegmentor':
            use_host_alone(cfg)
            cfg.work_dir = str(Path(cfg.work_dir) / NO_TPA)
        return cfg

    def settings(self, cfg: Config) -> dict:
        """Returns what tells results of this variant from others, in the types of JSON."""
        content = [cfg.model, cfg.test_dataloader.dataset, cfg.test_evaluator, cfg.get('custom_hooks')]
        text = json.dumps(content, default=str, sort_keys=True)
        options = {
            key: value if isinstance(value, (int, float, str)) else str(value) for key, value in self.options.items()
        }
        return {
            'options': options,
            'tpa': self.tpa,
            'bank': self.bank,
            'checkpoint': self.checkpoint,
            'config': hashlib.sha256(text.encode()).hexdigest()[:8],
        }
