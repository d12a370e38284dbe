"""Every name once, as data."""

from __future__ import annotations

from pathlib import Path

#: The configs, in a checkout and in an installed package.
CONFIGS = Path(__file__).resolve().parents[1] / '.mim' / 'configs'
