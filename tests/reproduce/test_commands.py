"""What a user types: list, dry runs, check."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.world import run_in_process
from tests.reproduce.test_results import RESULT, VARIANT
from tpa_mmseg.launch import Progress
from tpa_mmseg.reproduce import RunFolder, plan
from tpa_mmseg.reproduce.results import Scores


def finish(work_dir: Path, base: float, tpa: float, **settings) -> RunFolder:
    """A result of SCLIP B/16 on VOC21, for which the paper has 59.1 and 61.1."""
    folder = RunFolder.of(plan('main')[0], work_dir)
    folder.path.mkdir(parents=True)
    scores = Scores(90.0, tpa, 80.0), Scores(0.0, round(tpa - base, 2), 0.0)
    variant = replace(VARIANT, tpa=scores[0], gain=scores[1])
    replace(RESULT, host=Scores(90.0, base, 80.0), variants=(variant,), **settings).save(folder.results)
    return folder


def fail(work_dir: Path, why: str) -> None:
    RunFolder.of(plan('main')[1], work_dir).note(Progress(error=why))


def test_list_counts_what_has_become_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    finish(tmp_path, 59.0, 61.0)
    fail(tmp_path, 'No data.')
    run_in_process('reproduce', 'list', '--work-dir', tmp_path)
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith('| main'))
    assert [int(number) for number in re.findall(r'\d+', row)] == [88, 86, 0, 0, 1, 1]


def test_list_of_an_experiment_says_why_a_run_failed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    fail(tmp_path, 'No data.')
    run_in_process('reproduce', 'list', 'main', '--work-dir', tmp_path)
    assert re.search(r'sclip_vit-b16_context60 .* failed .* No data\.', capsys.readouterr().out)


def test_dry_run_shows_what_is_left_and_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    finish(tmp_path, 59.0, 61.0)
    options = '--host', 'sclip', '--backbone', 'vit-b16', '--dataset', 'voc21', 'voc20'
    run_in_process('reproduce', 'run', 'main', *options, '--work-dir', tmp_path, '--dry-run')
    out = capsys.readouterr().out
    assert 'sclip_vit-b16_voc20' in out and 'sclip_vit-b16_voc21' not in out
    assert '1 of 2 runs are done; 1 to run with 1,449 images.' in out
    assert re.search(r'sclip_vit-b16_voc20 .* data/VOCdevkit/VOC2012, .*CLIP ViT-B-16', out)
    assert not RunFolder.of(plan('main')[3], tmp_path).path.exists()


def test_what_was_done_with_other_settings_is_neither_skipped_nor_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    trial = {'test_dataloader.dataset.size': 20, 'test_dataloader.num_workers': 8}
    folder = finish(tmp_path, 59.0, 61.0, cfg_options=trial)
    with pytest.raises(SystemExit):
        run_in_process('reproduce', 'run', 'main', '--work-dir', tmp_path, '--dry-run')
    said = capsys.readouterr().err
    assert 'main sclip_vit-b16_voc21: test_dataloader.dataset.size=20 test_dataloader.num_workers=8' in said
    assert folder.results.exists()
    # How fast the data are read changes no number.
    same = '--cfg-options', 'test_dataloader.dataset.size=20'
    few = '--host', 'sclip', '--dataset', 'voc21', 'voc20', '--limit', '1'
    run_in_process('reproduce', 'run', 'main', *few, '--work-dir', tmp_path, '--dry-run', *same)
    assert '1 of 4 runs are done; 1 to run' in capsys.readouterr().out
    run_in_process('reproduce', 'run', 'main', *few, '--work-dir', tmp_path, '--dry-run', '--rerun')
    out = capsys.readouterr().out
    assert '1 to run with 1,449 images.' in out and 'sclip_vit-b16_voc21' in out


def test_damaged_result_is_one_that_is_to_be_made(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = finish(tmp_path, 59.0, 61.0)
    folder.results.write_text('{', encoding='utf-8')
    run_in_process('reproduce', 'list', 'main', '--work-dir', tmp_path)
    assert re.search(r'sclip_vit-b16_voc21 .* failed .*results\.json is not a readable', capsys.readouterr().out)
    few = '--host', 'sclip', '--backbone', 'vit-b16', '--dataset', 'voc21'
    run_in_process('reproduce', 'run', 'main', *few, '--work-dir', tmp_path, '--dry-run')
    assert '0 of 1 runs are done; 1 to run' in capsys.readouterr().out


@pytest.mark.parametrize(
    'options', [['--gpus', '99'], ['--launcher', 'slurm'], ['--dry-run']], ids=['no such GPUs', 'no sbatch', 'dry']
)
def test_results_stay_where_nothing_was_started_that_repeats_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setenv('PATH', str(tmp_path))
    folder = finish(tmp_path, 59.0, 61.0)
    with contextlib.suppress(SystemExit):
        run_in_process('reproduce', 'run', 'main', '--limit', '1', '--rerun', '--work-dir', tmp_path, *options)
    assert folder.result() is not None


def test_check_passes_what_is_near_the_paper(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    finish(tmp_path, 58.0, 60.5)
    run_in_process('reproduce', 'check', '--work-dir', tmp_path)
    assert '3 of their numbers are in the paper, 0 of these are more than 1.5' in capsys.readouterr().out


def test_check_fails_where_a_number_is_far_from_the_paper(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    finish(tmp_path, 59.0, 57.0)
    with pytest.raises(SystemExit) as ended:
        run_in_process('reproduce', 'check', 'main', '--work-dir', tmp_path)
    assert ended.value.code == 1
    out = capsys.readouterr().out
    assert re.search(r'sclip_vit-b16_voc21 .* tpa .* 57\.00 .* 61\.10 .* -4\.10', out)
    run_in_process('reproduce', 'check', '--work-dir', tmp_path, '--tolerance', '5')


def test_check_fails_where_a_run_failed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    fail(tmp_path, 'No data.')
    with pytest.raises(SystemExit):
        run_in_process('reproduce', 'check', '--work-dir', tmp_path)
    assert 'main sclip_vit-b16_context60: No data.' in capsys.readouterr().err
