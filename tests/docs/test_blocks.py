"""Marked blocks of the pages run one after the other, in a folder like a checkout, as printed but for long ones."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, checkout
from tests.helpers.world import run_in_process

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / 'docs').glob('*.md')
    if '<!-- run -->' in path.read_text(encoding='utf-8')
)

#: What would take too long here, and what is run instead.
SHORTER = {'--size 60': '--size 6'}


def run(command: str) -> None:
    """Runs ``tpa TOOL ...`` or ``python tools/TOOL.py ...`` without a new interpreter."""
    for long, short in SHORTER.items():
        command = command.replace(long, short)
    program, tool, *args = shlex.split(command)
    assert program == 'tpa' or (program == 'python' and tool.startswith('tools/')), command
    run_in_process(Path(tool).stem.replace('-', '_'), *args)


def test_pages_have_blocks() -> None:
    assert {'docs/quickstart.md', 'docs/add_a_dataset.md', 'docs/own_images.md'} <= set(PAGES)


@pytest.mark.slow
@pytest.mark.parametrize('page', PAGES)
def test_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout(tmp_path))
    for block in blocks(page):
        if block.file:
            Path(block.file).write_text(block.text, encoding='utf-8')
        elif block.language == 'python':
            exec(compile(block.text, page, 'exec'), {})
        else:
            for command in block.commands:
                run(command)
