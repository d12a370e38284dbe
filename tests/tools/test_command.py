"""The command ``tpa``: every tool behind it, and help that costs no import."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tpa_tools.__main__ import COMMANDS, main

from tests.helpers.world import ROOT, environment

# Importing any of these takes seconds.
HEAVY = ('torch', 'numpy', 'mmengine', 'mmseg', 'timm', 'open_clip', 'tpa_mmseg')
TOOLS = sorted(path.stem for path in (ROOT / 'tools').glob('*.py') if 'def main(argv' in path.read_text('utf-8'))


def imported_by(script: str) -> set[str]:
    """Runs a script that ends with SystemExit(0). Returns the heavy modules that it has imported."""
    code = f"""
import sys
try:
    {script}
except SystemExit as stop:
    assert not stop.code, stop.code
print('imported:', *(name for name in {HEAVY!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, env=environment(), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert 'usage: ' in done.stdout
    return set(done.stdout.rpartition('imported:')[2].split())


def test_every_command_is_a_tool():
    assert {name.replace('-', '_') for name in COMMANDS} <= set(TOOLS)


@pytest.mark.parametrize('arguments', [['--help'], *([name, '--help'] for name in COMMANDS)], ids=' '.join)
def test_the_help_of_a_command_imports_nothing_heavy(arguments):
    assert imported_by(f'from tpa_tools.__main__ import main; main({arguments!r})') == set()


@pytest.mark.parametrize('tool', [tool for tool in TOOLS if tool != '__main__'])
def test_the_help_of_a_script_imports_nothing_heavy(tool):
    script = f"import runpy; sys.argv = ['{tool}.py', '--help']; runpy.run_path('tools/{tool}.py', run_name='__main__')"
    assert imported_by(script) == set()


def test_help_names_the_command_as_it_is_typed(capsys):
    with pytest.raises(SystemExit):
        main(['build-bank', '--help'])
    assert capsys.readouterr().out.startswith('usage: tpa build-bank ')


def test_an_unknown_command_is_answered_with_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stop:
        main(['tets'])
    assert stop.value.code == 2
    assert "invalid choice: 'tets'" in capsys.readouterr().err


@pytest.mark.parametrize('tool', ['test', 'build-bank', 'reproduce'])
def test_a_setting_without_a_value_is_refused_in_one_line(tool, capsys):
    rest = {'test': ['c.py'], 'build-bank': ['c.py', '--out', 'b'], 'reproduce': ['run', 'main']}[tool]
    with pytest.raises(SystemExit) as stop:
        main([tool, *rest, '--cfg-options', 'a=1', 'model.fusion.alpha'])
    assert stop.value.code == 2
    assert capsys.readouterr().err == "error: --cfg-options expects KEY=VALUE, got 'model.fusion.alpha'.\n"
