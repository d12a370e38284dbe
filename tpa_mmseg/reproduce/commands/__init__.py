"""The commands of tools/reproduce.py, which has their arguments: each module has ``main(args)``."""

from __future__ import annotations

from ..experiments import EXPERIMENTS


def chosen(names: list[str]) -> list[str]:
    """Names of experiments, each once, with ``all`` spelled out."""
    return list(dict.fromkeys(name for given in names for name in (EXPERIMENTS if given == 'all' else [given])))
