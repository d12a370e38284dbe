"""The commands in the documentation are commands of the tools."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import pytest
from tpa_tools import prepare

from tests.helpers.world import ROOT
from tpa_mmseg import catalog
from tpa_mmseg.prepare import LAYOUTS, WORKERS

PAGES = ('docs/data.md', 'data/README.md')
COMMANDS = [
    command
    for page in PAGES
    for command in re.findall(r'python (tools/(?:prepare|weights)\.py [a-z][^`\n]*)', (ROOT / page).read_text('utf-8'))
]


@pytest.mark.parametrize('command', COMMANDS)
def test_a_command_of_the_documentation_is_understood(command):
    tool, *arguments = shlex.split(command)
    parsed = importlib.import_module(f'tpa_tools.{Path(tool).stem}').parse_args(arguments)
    for config in getattr(parsed, 'configs', []):
        assert (ROOT / config).is_file()


def test_the_tool_names_the_archives_of_the_layouts():
    layouts = {name: (layout.benchmarks, layout.archives) for name, layout in LAYOUTS.items()}
    assert layouts == prepare.DATASETS
    assert prepare.WORKERS == WORKERS


def test_every_data_set_and_every_model_is_in_the_documentation():
    page = (ROOT / 'docs/data.md').read_text('utf-8')
    assert {command.split()[1] for command in COMMANDS} >= {*LAYOUTS, 'check', 'list', 'download'}
    assert all(f'`{name}.' in page for name in catalog.shipped().weights)
