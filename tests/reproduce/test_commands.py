"""What a user types: list, dry runs, Slurm, check."""

from __future__ import annotations

import contextlib
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.world import run_in_process
from tests.reproduce.test_results import RESULT, VARIANT
from tpa_mmseg.reproduce import RunFolder, plan, supervisor
from tpa_mmseg.reproduce.claims import claim
from tpa_mmseg.reproduce.layout import Progress, State
from tpa_mmseg.reproduce.results import Scores
from tpa_mmseg.reproduce.slurm import batch_of_this_job


def finish(work_dir: Path, base: float, tpa: float, **settings) -> RunFolder:
    """A result of SCLIP B/16 on VOC21, for which the paper has 59.1 and 61.1."""
    folder = RunFolder.of(plan('main')[0], work_dir)
    folder.path.mkdir(parents=True)
    scores = Scores(90.0, tpa, 80.0), Scores(0.0, round(tpa - base, 2), 0.0)
    variant = replace(VARIANT, tpa=scores[0], gain=scores[1])
    replace(RESULT, host=Scores(90.0, base, 80.0), variants=(variant,), **settings).save(folder.results)
    return folder


def fail(work_dir: Path, why: str) -> None:
    folder = RunFolder.of(plan('main')[1], work_dir)
    folder.note(Progress(claim(folder.path, 'one', None).number, error=why))


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
    assert '1 of 2 runs are done. 1 runs, 1,449 images' in out
    assert not RunFolder.of(plan('main')[3], tmp_path).path.exists()


def test_slurm_gets_one_array_with_a_task_per_run_that_is_left(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    finish(tmp_path, 59.0, 61.0, cfg_options={'model.host.pamr_dilations': [8, 16]})
    options = '--host', 'sclip', '--launcher', 'slurm', '--gpus', '4', '--slurm-options', '-p gpu --time=8:00:00'
    settings = '--cfg-options', 'test_dataloader.num_workers=8', 'model.host.pamr_dilations=[8, 16]'
    run_in_process('reproduce', 'run', 'main', *options, *settings, '--work-dir', tmp_path, '--dry-run')
    script = capsys.readouterr().out
    assert '#SBATCH --array=0-14%4\n' in script
    assert '#SBATCH -p gpu --time=8:00:00\n' in script
    assert script.splitlines()[-1].endswith(
        "--host sclip --limit 1 --cfg-options test_dataloader.num_workers=8 'model.host.pamr_dilations=[8,16]'"
    )
    assert subprocess.run(['bash', '-n'], input=script, text=True).returncode == 0


def test_limit_is_shared_by_the_workers_of_a_command() -> None:
    assert supervisor.shares(5, 3) == [2, 2, 1]
    assert supervisor.shares(1, 3) == [1]
    assert supervisor.shares(0, 3) == [0, 0, 0]


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
    run_in_process('reproduce', 'run', 'main', '--work-dir', tmp_path, '--dry-run', *same)
    assert '1 of 88 runs are done' in capsys.readouterr().out
    run_in_process('reproduce', 'run', 'main', '--work-dir', tmp_path, '--dry-run', '--again')
    assert '88 runs, ' in capsys.readouterr().out


def test_damaged_result_is_one_that_is_to_be_made(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = finish(tmp_path, 59.0, 61.0)
    folder.results.write_text('{', encoding='utf-8')
    run_in_process('reproduce', 'list', 'main', '--work-dir', tmp_path)
    assert re.search(r'sclip_vit-b16_voc21 .* failed .*results\.json is not a readable', capsys.readouterr().out)
    run_in_process('reproduce', 'run', 'main', '--host', 'sclip', '--work-dir', tmp_path, '--dry-run')
    assert '\n16 runs, ' in capsys.readouterr().out


@pytest.mark.parametrize(
    'options', [['--gpus', '99'], ['--launcher', 'slurm'], ['--dry-run']], ids=['no such GPUs', 'no sbatch', 'dry']
)
def test_results_stay_where_nothing_was_started_that_repeats_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setenv('PATH', str(tmp_path))
    folder = finish(tmp_path, 59.0, 61.0)
    with contextlib.suppress(SystemExit):
        run_in_process('reproduce', 'run', 'main', '--again', '--work-dir', tmp_path, *options)
    assert folder.state() is State.DONE


def test_there_is_a_guess_before_the_first_run_and_an_estimate_after_it(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    options = 'reproduce', 'run', 'main', '--host', 'sclip', '--dataset', 'voc21', '--work-dir', tmp_path, '--dry-run'
    run_in_process(*options)
    # 2 x 1,449 images.
    assert 'about 24 min (a guess, with 0.5 s per image: no run is finished yet)' in capsys.readouterr().out
    finish(tmp_path, 59.0, 61.0, images=1449, seconds=144.9, startup_seconds=5.1)
    run_in_process(*options)
    assert 'about 2 min (estimated from finished runs)' in capsys.readouterr().out


def test_missing_sbatch_is_named_with_the_script_to_submit(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PATH', str(tmp_path))
    with pytest.raises(SystemExit):
        run_in_process('reproduce', 'run', 'k', '--launcher', 'slurm', '--work-dir', tmp_path)
    (script,) = tmp_path.glob('paper/slurm/k-*.sbatch')
    assert f'There is no sbatch on this machine: submit {script}' in capsys.readouterr().err


def test_tasks_of_an_array_work_for_one_batch_until_they_are_requeued(monkeypatch: pytest.MonkeyPatch) -> None:
    assert batch_of_this_job() is None
    monkeypatch.setenv('SLURM_ARRAY_JOB_ID', '17')
    monkeypatch.setenv('SLURM_ARRAY_TASK_ID', '3')
    assert batch_of_this_job() == 'slurm-17'
    monkeypatch.setenv('SLURM_RESTART_COUNT', '1')
    assert batch_of_this_job() == 'slurm-17-3-1'


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


def test_every_gpu_gets_a_worker_and_cpus_share_their_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, 'device_count', lambda: 3)
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    environments = supervisor.worker_environments(None, processes=1)
    assert [e['CUDA_VISIBLE_DEVICES'] for e in environments] == ['0', '1', '2']
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '4,6,7')
    environments = supervisor.worker_environments(2, processes=1)
    assert [e['CUDA_VISIBLE_DEVICES'] for e in environments] == ['4', '6']
    with pytest.raises(Exception, match='--gpus 4 asks for more GPUs than the 3'):
        supervisor.worker_environments(4, processes=1)
    monkeypatch.setattr(supervisor, 'device_count', lambda: 0)
    monkeypatch.setattr(supervisor.os, 'cpu_count', lambda: 8)
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
    environments = supervisor.worker_environments(None, processes=4)
    assert [e['OMP_NUM_THREADS'] for e in environments] == ['2'] * 4
