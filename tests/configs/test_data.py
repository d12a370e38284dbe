"""data/README.md tells what tools/prepare.py does."""

from __future__ import annotations

import re

from tests.helpers.world import ROOT
from tpa_mmseg.prepare import LAYOUTS

README = (ROOT / 'data/README.md').read_text(encoding='utf-8')


def test_commands_prepare_every_data_set() -> None:
    commands = re.findall(r'^python tools/prepare\.py (\w+) --source (.+)$', README, re.MULTILINE)
    assert dict(commands) == {name: layout.archives for name, layout in LAYOUTS.items()}


def test_folders_and_numbers_of_images_are_right() -> None:
    for layout in LAYOUTS.values():
        folder = layout.folder.removeprefix('VOCdevkit/')
        (line,) = re.findall(rf'^.*── {folder}/ .*$', README, re.MULTILINE)
        assert f'{next(iter(layout.counts))} images' in line
