"""What the report calls things, read from ``words.yaml``."""

from pathlib import Path

import yaml

WORDS = yaml.safe_load(Path(__file__).with_suffix('.yaml').read_text(encoding='utf-8'))
