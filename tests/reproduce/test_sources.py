"""One file of results serves wherever the folders of runs do, and what is not one is refused."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.world import run_in_process
from tests.reproduce.made_up import PROVENANCE
from tests.reproduce.report_results import fill, made_up, save
from tests.reproduce.test_results import RESULT
from tpa_mmseg.errors import TPAError
from tpa_mmseg.reproduce import RunFolder, plan
from tpa_mmseg.reproduce.report import write_report
from tpa_mmseg.reproduce.sources import Source, write_results


@pytest.fixture(scope='module')
def work_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SCLIP of the main table, and its results in both kinds of file."""
    folder = tmp_path_factory.mktemp('runs')
    fill(folder, 'main', only=lambda run: run.row.host == 'sclip')
    for suffix in ('jsonl', 'parquet'):
        run_in_process('reproduce', 'collect', folder / f'all.{suffix}', '--work-dir', folder)
    return folder


@pytest.mark.parametrize('suffix', ['jsonl', 'parquet'])
def test_file_has_the_results_of_the_folders(work_dir: Path, suffix: str) -> None:
    folders, file = Source(work_dir), Source(work_dir / f'all.{suffix}')
    assert [view.result for view in file.views('paper')] == [view.result for view in folders.views('paper')]
    assert sum(view.result is not None for view in file.views('paper')) == 16


def test_report_and_check_need_nothing_but_the_file(work_dir: Path, tmp_path: Path, capsys) -> None:
    alone = tmp_path / 'all.jsonl'
    alone.write_bytes((work_dir / 'all.jsonl').read_bytes())
    texts = []
    for source, out in ((Source(work_dir), tmp_path / 'a'), (Source(alone), tmp_path / 'b')):
        write_report(source, out, ['paper'], formats=())
        texts.append((out / 'tables/paper/main-numbers.csv').read_text())
    assert texts[0] == texts[1]
    capsys.readouterr()
    run_in_process('reproduce', 'check', '--results', alone)
    assert '16 of 453 runs are done; 48 of their numbers are in the paper, 0 of these' in capsys.readouterr().out


def test_nothing_to_collect_is_said(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        run_in_process('reproduce', 'collect', tmp_path / 'all.jsonl', '--work-dir', tmp_path)
    assert f'No results in {tmp_path}' in capsys.readouterr().err
    with pytest.raises(TPAError, match=r'must end in \.jsonl or \.parquet'):
        write_results(tmp_path / 'all.csv', [RESULT])


def test_two_machines_are_compared_number_by_number(work_dir: Path, tmp_path: Path, capsys) -> None:
    run = plan('main')[0]
    result = made_up(run, 0, RunFolder.of(run, tmp_path), base=60.1, gain=2.0)
    save(tmp_path, replace(result, provenance=replace(PROVENANCE, device='Other device')), run)
    with pytest.raises(SystemExit) as ended:
        run_in_process('reproduce', 'compare', work_dir / 'all.jsonl', tmp_path, '--out', tmp_path / 'both.csv')
    assert ended.value.code == 1
    out = capsys.readouterr().out
    assert re.search(r'sclip_vit-b16_voc21 .* base .* 59\.10 .* 60\.10 .* \+1\.00', out)
    assert 'on Imaginary device' in out and 'on Other device' in out
    assert '3 numbers are in both, 2 of them differ by more than 0 points; 45 are only in A, 0 only in B.' in out
    with (tmp_path / 'both.csv').open(newline='') as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 48 and rows[0]['Difference'] == '1.0' and rows[-1]['B'] == ''
    run_in_process('reproduce', 'compare', work_dir / 'all.jsonl', tmp_path, '--tolerance', '2')


def test_ours_is_compared_with_the_paper(work_dir: Path, capsys: pytest.CaptureFixture) -> None:
    run_in_process('reproduce', 'compare', work_dir / 'all.parquet', 'paper', '--tolerance', '1.5')
    out = capsys.readouterr().out
    assert 'B: paper, as printed' in out and re.search(r'48 numbers are in both, 0 of them .* 0 are only in A', out)


def test_comparison_with_nothing_is_an_error(work_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        run_in_process('reproduce', 'compare', work_dir, tmp_path / 'nothing')
    assert 'No scores in' in capsys.readouterr().err


def test_wrong_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / 'all.jsonl'
    path.write_bytes(RESULT.to_json() + b'\n{"schema": 2}\n')
    with pytest.raises(TPAError, match=r'Line 2 of .*all\.jsonl is not a readable result \(schema: '):
        Source(path)
    path.write_bytes((RESULT.to_json() + b'\n') * 2)
    with pytest.raises(TPAError, match='Line 2 of .* has a second result of paper cost'):
        Source(path)
    with pytest.raises(TPAError, match=r'gone\.jsonl cannot be read'):
        Source(tmp_path / 'gone.jsonl')


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_file_is_our_error(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / f'all.{data.draw(st.sampled_from(["jsonl", "parquet"]))}'
    write_results(path, [RESULT])
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        Source(path)
    except TPAError as error:
        assert str(path) in str(error) and '\n' not in str(error)


def test_results_of_runs_that_are_not_planned_are_counted(work_dir: Path, tmp_path: Path, capsys) -> None:
    results = [view.result for view in Source(work_dir).views('paper') if view.result is not None]
    others = [replace(results[0], run='sclip_vit-b16_mars'), replace(results[0], suite='elsewhere')]
    write_results(tmp_path / 'all.jsonl', [*results, *others])
    run_in_process('reproduce', 'check', '--results', tmp_path / 'all.jsonl')
    found = capsys.readouterr()
    assert found.out.startswith('16 of 453 runs are done')
    assert found.err == f'{tmp_path / "all.jsonl"}: 2 results are of runs that this version does not plan.\n'
