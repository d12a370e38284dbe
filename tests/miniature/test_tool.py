"""tools/miniature.py: exporting, training, and the numbers it writes into the documentation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file
from tpa_tools.miniature_training import page
from tpa_tools.miniature_training.cards import read_card

from tests.helpers.world import ROOT, run_in_process
from tpa_mmseg.errors import TPAError

PAGE = ROOT / 'docs/miniature.md'


def test_scenes_are_exported(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    run_in_process('miniature', 'export', tmp_path, '--split', 'val', '--size', 2, '--resolution', 24, 32)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob('*.png')) == [
        f'{kind}/val-24x32/0000{index}.png' for kind in ('images', 'labels') for index in range(2)
    ]
    assert '2 scenes of val are in' in capsys.readouterr().out


def test_a_training_writes_weights_a_card_and_a_log(tmp_path: Path) -> None:
    out, work_dir = tmp_path / 'fcn.safetensors', tmp_path / 'train' / 'fcn'
    common = ('miniature', 'train', 'fcn', '--out', out, '--work-dir', work_dir)
    run_in_process(*common, '--set', 'steps=2', 'scenes=3', 'batch=2')
    card = read_card(out)
    assert card['settings']['steps'] == 2 and card['bytes'] == out.stat().st_size
    assert card['parameters'] == sum(tensor.numel() for tensor in load_file(out).values())
    assert [json.loads(line)['step'] for line in (work_dir / 'log.jsonl').read_text().splitlines()] == [2]


@pytest.mark.parametrize(
    ('setting', 'said'),
    [
        ('steps', 'is not KEY=VALUE'),
        ('steps=many', 'is not KEY=VALUE'),
        ('stpes=2', "Unknown setting 'stpes'. Choose from: steps"),
    ],
)
def test_wrong_settings_are_refused(setting: str, said: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        run_in_process('miniature', 'train', 'fcn', '--set', setting)
    assert said in capsys.readouterr().err


def test_the_page_is_filled_between_its_marks() -> None:
    text = 'a\n<!-- cards -->\nold\n<!-- end of cards -->\nb\n'
    once = page.replace(text, 'cards', 'new \\1')
    assert once == 'a\n<!-- cards -->\n\nnew \\1\n\n<!-- end of cards -->\nb\n'
    assert page.replace(once, 'cards', 'new \\1') == once
    with pytest.raises(TPAError, match='needs the marks <!-- test -->'):
        page.replace(text, 'test', '')


def test_the_page_has_the_committed_cards_and_numbers(tmp_path: Path) -> None:
    copy = tmp_path / 'page.md'
    copy.write_text(PAGE.read_text(encoding='utf-8'), encoding='utf-8')
    page.fill(copy)
    assert copy.read_text(encoding='utf-8') == PAGE.read_text(encoding='utf-8'), 'run python tools/miniature.py card'
