"""The commands in the documentation are commands of the tools."""

from __future__ import annotations

import importlib.util
import re
import shlex

import pytest

from tests.helpers.world import ROOT
from tpa_mmseg import catalog
from tpa_mmseg.prepare import LAYOUTS

PAGES = ('docs/data.md', 'data/README.md')
COMMANDS = [
    command
    for page in PAGES
    for command in re.findall(r'python (tools/(?:prepare|weights)\.py [a-z][^`\n]*)', (ROOT / page).read_text('utf-8'))
]


@pytest.mark.parametrize('command', COMMANDS)
def test_a_command_of_the_documentation_is_understood(command, monkeypatch):
    tool, *arguments = shlex.split(command)
    spec = importlib.util.spec_from_file_location('tool', ROOT / tool)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr('sys.argv', [tool, *arguments])
    parsed = module.parse_args()
    for config in getattr(parsed, 'configs', []):
        assert (ROOT / config).is_file()


def test_every_data_set_and_every_model_is_in_the_documentation():
    page = (ROOT / 'docs/data.md').read_text('utf-8')
    assert {command.split()[1] for command in COMMANDS} >= {*LAYOUTS, 'check', 'list', 'fetch'}
    assert all(f'`{name}.' in page for name in catalog.shipped().weights)
