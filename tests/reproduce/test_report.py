"""What the report says: our numbers, the paper's, and nothing that was not measured."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from tests.helpers.world import run_in_process
from tests.reproduce.report_results import fill, made_up, save
from tpa_mmseg.errors import TPAError
from tpa_mmseg.launch import Progress
from tpa_mmseg.reproduce.experiments import EXPERIMENTS, plan
from tpa_mmseg.reproduce.folders import RunFolder
from tpa_mmseg.reproduce.report import albums, write_report
from tpa_mmseg.reproduce.report.build import build_report
from tpa_mmseg.reproduce.report.tables import Cell, Table
from tpa_mmseg.reproduce.runs import Run
from tpa_mmseg.reproduce.sources import Source
from tpa_mmseg.reproduce.suite import SUITES

HOSTILE = '=cmd|<b>"x"</b>_$%&{}~^\\'


@pytest.fixture(scope='module')
def toy() -> Iterator[None]:
    """A suite that looks like the paper's but is not."""
    suite = replace(SUITES['paper'], name='toy', rows=SUITES['paper'].rows[:2], ablation_benchmarks=('voc21',))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, 'toy', suite)
        yield


@pytest.fixture(scope='module')
def toy_report(toy: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of all experiments of that suite."""
    folder = tmp_path_factory.mktemp('toy')
    for experiment in EXPERIMENTS:
        fill(folder, experiment, 'toy', lambda run: run.benchmark == 'voc21')
    return write(folder, suites=['toy'])


@pytest.fixture(scope='module')
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of some of the paper's experiments."""
    folder = tmp_path_factory.mktemp('several')
    for experiment in ('composition', 'overlap', 'repetition', 'cost'):
        fill(folder, experiment)
    return write(folder, suites=['paper'])


def write(work_dir: Path, formats: tuple[str, ...] = (), **options) -> Path:
    return write_report(Source(work_dir), work_dir / 'report', formats=formats, **options)[0].parent


def text(out: Path, name: str) -> str:
    return (out / name).read_text(encoding='utf-8')


def numbers(out: Path, name: str = 'main-numbers', suite: str = 'paper') -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text(out, f'tables/{suite}/{name}.csv'))))


def section(out: Path, name: str) -> str:
    return re.search(rf'id="{name}".*?</table>', text(out, 'report.html'), re.S)[0]


def main_run(benchmark: str = 'voc21') -> Run:
    return next(run for run in plan('main') if run.benchmark == benchmark)


def test_before_anything_has_run_there_are_no_numbers_but_the_papers(tmp_path: Path) -> None:
    out = write(tmp_path)
    rows = numbers(out)
    others = len(plan('main', comparisons=True)) - len(plan('main'))
    assert len(rows) == 3 * len(plan('main')) + others
    assert {row['State'] for row in rows} == {'not run'} and {row['Ours'] for row in rows} == {''}
    # NACLIP + MLMP has no numbers of VOC20 and ADE20K.
    assert sum(not row['Paper'] for row in rows) == 2
    cells = re.findall(r'<td><span class="n[^>]*>(.*?)</span></td>', section(out, 'paper-main'))
    # Three rows for each of eleven hosts, and eleven of other methods.
    assert len(cells) == 44 * 9
    printed = [re.fullmatch(r'(?:not run|0 of 8 run)(<small>paper [-+.\d]+</small>)?', cell)[1] for cell in cells]
    # NACLIP + MLMP again, and its average.
    assert sum(paper is None for paper in printed) == 3
    assert re.search(
        r'<b>0</b> rows agree.*<b>0</b> rows do not.*<b>87</b> rows have not run', section(out, 'paper'), re.S
    )


def test_finished_run_stands_beside_the_papers_numbers(tmp_path: Path) -> None:
    run = main_run()
    save(tmp_path, made_up(run, 0, RunFolder.of(run, tmp_path), base=59.35, gain=2.5), run)
    rows = numbers(write(tmp_path))[:3]
    assert (rows[0]['Host'], rows[0]['Backbone'], rows[0]['Benchmark']) == ('SCLIP', 'ViT-B/16', 'VOC21')
    assert [row['Number'] for row in rows] == ['base', 'tpa', 'gain']
    assert [float(row['Ours']) for row in rows] == [59.35, 61.85, 2.5]
    assert [float(row['Paper']) for row in rows] == [59.1, 61.1, 2.0]
    assert [float(row['Difference']) for row in rows] == [0.25, 0.75, 0.5]


@pytest.mark.parametrize(('tolerance', 'marked'), [(1.5, 2), (2.5, 1)])
def test_what_is_outside_the_tolerance_is_marked_everywhere(tmp_path: Path, tolerance: float, marked: int) -> None:
    run = main_run()
    # The paper has 59.1, 61.1 and a gain of 2.0: the host is 1 point off, TPA 3, and the gain 2.
    save(tmp_path, made_up(run, 0, RunFolder.of(run, tmp_path), base=60.1, gain=4.0), run)
    out = write(tmp_path, tolerance=tolerance)
    assert section(out, 'paper-main').count('▲') == marked
    assert text(out, 'tables/paper/main.tex').count(r'$\uparrow$') == marked
    assert text(out, 'report.md').count(' ▲ |') == marked
    assert f'{marked} of them differ by more than {tolerance:g} points' in text(out, 'report.md')


def test_average_is_taken_only_when_all_benchmarks_have_run(tmp_path: Path) -> None:
    fill(tmp_path, 'main', only=lambda run: run.row.host == 'sclip' and run.name != 'sclip_vit-l14_ade20k')
    out = write(tmp_path)
    lines = [[cell.strip() for cell in line.split('|')] for line in text(out, 'report.md').splitlines()]
    averages = {cells[2]: cells[-2] for cells in lines if cells[1:2] == ['SCLIP'] and len(cells) == 13}
    ours = [float(row['Ours']) for row in numbers(out) if row['Number'] == 'base' and row['Ours']][:8]
    # The means of the cells that the paper prints are 38.16 and 29.02.
    assert averages == {'ViT-B/16': f'{sum(ours) / 8:.1f} (38.2)', 'ViT-L/14': '– (29.0) 7 of 8 run'}


def test_average_over_fewer_benchmarks_than_others_says_over_how_many(several: Path) -> None:
    lines = text(several, 'report.md').splitlines()
    assert all('over 7 of 8' in line for line in lines if line.startswith('| NACLIP at 224'))
    assert not any('over ' in line for line in lines if line.startswith('| ProxyCLIP'))


def test_suite_in_which_something_was_started_is_in_the_report(tmp_path: Path, toy: None) -> None:
    fill(tmp_path, 'k', 'toy')
    assert [part.suite for part in build_report(Source(tmp_path), None, 1.5)] == ['paper', 'toy']
    assert [part.suite for part in build_report(Source(tmp_path / 'empty'), None, 1.5)] == ['paper']


def test_suite_that_is_not_the_papers_is_marked_and_has_none_of_its_numbers(toy_report: Path) -> None:
    out, page = toy_report, text(toy_report, 'report.html')
    assert 'no number of the paper stands beside them' in page
    assert '<small>paper' not in page and 'rows agree' not in page
    assert page.count('<span class="badge">toy suite</span>') > page.count('<table')
    assert not {'Paper', 'Difference'} & set(numbers(out, suite='toy')[0])


def test_failed_and_damaged_runs_say_why(tmp_path: Path) -> None:
    fill(tmp_path, 'main', only=lambda run: run.row.host == 'sclip')
    RunFolder.of(main_run(), tmp_path).results.write_text('{', encoding='utf-8')
    failed = RunFolder.of(plan('main', hosts=['naclip'])[0], tmp_path)
    failed.note(Progress(error='data/VOC <2012> is missing: prepare it.'))
    out = write(tmp_path)
    for name in ('report.html', 'report.md'):
        assert 'data/VOC &lt;2012&gt; is missing: prepare it.' in text(out, name)
        assert 'is not a readable result' in text(out, name)
    assert [row['State'] for row in numbers(out)[0:6:3]] == ['failed', 'done']


def test_number_of_fewer_images_than_planned_says_so(tmp_path: Path) -> None:
    run = main_run()
    save(tmp_path, replace(made_up(run, 0, RunFolder.of(run, tmp_path)), images=20), run)
    out = write(tmp_path)
    assert numbers(out)[0]['State'] == 'done, 20 of 1,449 images'
    assert section(out, 'paper-main').count('<small>20 of 1,449 images</small>') == 3
    assert r'planned: sclip\_vit-b16\_voc21 (20 of 1,449 images).' in text(out, 'report.md')


def test_latex_has_the_papers_rows_in_its_order_between_rules(tmp_path: Path) -> None:
    fill(tmp_path, 'main')
    table = text(write(tmp_path), 'tables/paper/main.tex')
    blocks = table.split(r'\bottomrule')[0].split('\\midrule\n')[1:]
    lines = [line for block in blocks for line in block.splitlines()]
    assert {line.count('&') for line in lines} == {10} and all(line.endswith(r'\\') for line in lines)
    names = [tuple(cell.strip() for cell in line.split('&')[:2]) for line in lines]
    suite = SUITES['paper']
    hosts = [name for name in names if name[1]]
    assert hosts == [(suite.hosts[host], suite.backbones[backbone]) for host, _, backbone in suite.rows]
    assert len(blocks) == len(hosts) == 11
    assert [name for name, _ in names[:5]] == ['SCLIP', '+ FSA', '+ ResCLIP', '+ TPA', 'gain']
    assert [block.split()[0] for block in blocks if '+ MLMP' in block] == ['NACLIP']
    assert '59.1 (59.1)' in lines[0] and r'\toprule' in table


def test_names_are_only_names_in_every_format() -> None:
    table = Table('t', HOSTILE, pd.DataFrame({HOSTILE: [HOSTILE, '\tx', '-1'], 'n': [-1.5, 2.0, float('nan')]}))
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert rows == [[f"'{HOSTILE}", 'n'], [f"'{HOSTILE}", '-1.5'], ["'\tx", '2.0'], ["'-1", '']]
    assert '<b>' not in table.to_html() and '=cmd|&lt;b&gt;' in table.to_html()
    markdown = table.to_markdown().splitlines()
    assert '<b>' not in markdown[2] and r'=cmd\|' in markdown[2] and r'\_' in markdown[2]
    latex = table.to_latex()
    assert r'\_\$\%\&\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}' in latex
    assert HOSTILE not in latex.replace('\n', '')


def test_cell_says_what_is_missing() -> None:
    table = Table('t', '', pd.DataFrame({'a': [Cell(paper=2.0, note='not run'), Cell(1.0, 3.0, True), Cell()]}))
    assert re.findall(r'\| +(.*?) +\|', table.to_markdown())[-3:] == ['– (2.0) not run', '1.0 (3.0) ▼', '–']


def test_hostile_names_of_classes_stay_text_on_the_page(tmp_path: Path) -> None:
    run = next(run for run in plan('main') if run.name == 'naclip_vit-b16_voc21')
    result = made_up(run, 0, RunFolder.of(run, tmp_path))
    variant = result.variants[0]
    name = '</script><script>alert(1)</script>'
    classes = (replace(variant.per_class[0], name=name), *variant.per_class[1:])
    save(tmp_path, replace(result, variants=(replace(variant, per_class=classes),)), run)
    page = text(write(tmp_path, suites=['paper']), 'report.html')
    assert 'alert(1)</script>' not in page and '&lt;/script&gt;&lt;script&gt;alert(1)' in page


def test_every_figure_is_there_in_every_format(tmp_path: Path, toy: None) -> None:
    for experiment in ('k', 'sensitivity', 'bank-size', 'overlap', 'cost'):
        fill(tmp_path, experiment, 'toy')
    for experiment in ('main', 'repetition'):
        fill(tmp_path, experiment, 'toy', lambda run: run.benchmark == 'voc21')
    out = write(tmp_path, ('svg', 'png', 'pdf'), suites=['toy'])
    expected = {'k', 'bank-size-share', 'bank-size-images', 'overlap', 'overlap-classes-voc21', 'cost', 'repetition'}
    expected |= {'repetition-expected', 'coverage'}
    expected |= {f'sensitivity-{name}' for name in ('alpha', 'lambda', 'seed-of-the-pool')}
    folder = out / 'figures' / 'toy'
    assert {file.name for file in folder.iterdir()} == {
        f'{name}.{suffix}' for name in expected for suffix in ('svg', 'png', 'pdf')
    }
    for name in expected:
        assert ET.parse(folder / f'{name}.svg').getroot().tag.endswith('svg')
        assert Image.open(folder / f'{name}.png').width > 600
        assert (folder / f'{name}.pdf').read_bytes().startswith(b'%PDF')


def test_classes_of_the_ablations_host_are_drawn_with_their_names(tmp_path: Path) -> None:
    fill(tmp_path, 'main', only=lambda run: run.name == 'naclip_vit-b16_ade20k')
    page = text(write(tmp_path, suites=['paper']), 'report.html')
    specs = [json.loads(spec) for spec in re.findall(r'<script type="application/json">(.*?)</script>', page)]
    assert len(specs) == 1
    for spec in specs:
        names = [row['class'] for rows in spec['datasets'].values() for row in rows if 'class' in row]
        assert len(names) == 5 and 'net <wire>' in names and 'never seen' not in names


def test_runs_that_are_shown_class_by_class_can_be_chosen(tmp_path: Path) -> None:
    fill(tmp_path, 'main', only=lambda run: str(run.row) == 'sclip_vit-b16')
    assert 'figures/paper/classes-images' not in text(write(tmp_path, suites=['paper']), 'report.md')
    chosen = ['sclip_vit-b16_voc21', 'sclip_vit-b16_ade20k']
    page = text(write(tmp_path, suites=['paper'], classes=chosen), 'report.md')
    assert re.findall(r'classes-images-(.*?)\.svg', page) == ['sclip-vit-b16-voc21', 'sclip-vit-b16-ade20k']
    # Of five classes that are there, two are in fewer than 50 images, and both gain.
    assert re.search(r'SCLIP ViT-B/16, VOC21 +\| +2 \| +100 \| +-1\.00', page)
    with pytest.raises(TPAError, match='--classes sclip_voc21: the main table has no such run'):
        write(tmp_path, suites=['paper'], classes=['sclip_voc21'])


def test_without_a_rare_class_no_share_of_them_is_said(tmp_path: Path) -> None:
    run = next(run for run in plan('main') if run.name == 'naclip_vit-b16_ade20k')
    result = made_up(run, 0, RunFolder.of(run, tmp_path))
    classes = tuple(replace(entry, images=100) for entry in result.variants[0].per_class)
    save(tmp_path, replace(result, variants=(replace(result.variants[0], per_class=classes),)), run)
    assert re.search(r'NACLIP ViT-B/16, ADE20K \| +0 \| +– \|', text(write(tmp_path, suites=['paper']), 'report.md'))


def test_pools_say_which_share_of_the_evaluated_classes_they_have(tmp_path: Path) -> None:
    fill(tmp_path, 'overlap', only=lambda run: run.benchmark == 'voc21')
    table = text(write(tmp_path, suites=['paper']), 'tables/paper/overlap-pools.tex')
    assert [line.split(' & ')[1:4] for line in table.splitlines() if line.startswith('VOC21')] == [
        ['high', '80', '90'],
        ['random', '50', '60'],
        ['low', '20', '30'],
    ]


def test_claims_stand_beside_those_of_the_papers_cells_and_of_its_text(tmp_path: Path) -> None:
    fill(tmp_path, 'main', only=lambda run: run.row.host == 'sclip')
    out = write(tmp_path, suites=['paper'])
    rows = [[cell.strip() for cell in line.split('|')[1:-1]] for line in text(out, 'report.md').splitlines()]
    found = {row[0]: row[1:] for row in rows if len(row) == 4}
    # Made up with the gains of the paper: 3.70 and 8.28 for SCLIP.
    assert found['Mean gain'] == ['5.99 (2.95)', '16', '2.8']
    assert found['Negative cells'] == ['0 (4)', '16', '0']
    assert found['VFM hosts'] == ['– (1.54)', '0', '1.7']


def test_rows_of_other_methods_stand_beside_the_papers(tmp_path: Path) -> None:
    runs = plan('main', comparisons=True)
    others = [run for run in runs if run.row.variant == 'resclip' and run.row.host == 'naclip']
    for number, run in enumerate(others):
        save(tmp_path, made_up(run, number, RunFolder.of(run, tmp_path), base=50.0), run)
    out = write(tmp_path, suites=['paper'])
    (row,) = (line for line in text(out, 'tables/paper/main.tex').splitlines() if line.count('50.0') == 9)
    assert row.startswith('+ ResCLIP')
    resclip = text(out, 'tables/paper/main-resclip.tex')
    assert '50.0 (65.0)' in resclip and '(66.5)' in resclip and 'NACLIP + TPA' in resclip
    assert 'it is its base row plus the differences' in text(out, 'report.md')
    assert "from FSA's paper" in text(out, 'report.md')


def test_report_says_what_labels_were_used_for(several: Path) -> None:
    for name in ('report.html', 'report.md'):
        assert 'Labels were used only to make these splits' in text(several, name)
        assert 'labels are used for this statistic only' in text(several, name)


def test_times_come_with_the_papers_and_their_quartiles(several: Path) -> None:
    assert '10.00<small>paper 6.6</small>' in section(several, 'paper-cost')
    assert 'Measured on Imaginary device' in text(several, 'report.md')
    row = re.search(r'^\| ProxyCLIP \| ViT-B/16 +\| VOC21 .*$', text(several, 'report.md'), re.M)[0]
    assert '448 × 448' in row and '31.50 (32.0)' in row
    first = numbers(several, 'cost-numbers')[0]
    assert (first['Step'], first['Low'], first['High'], first['Paper']) == ('CLIP', '9.5', '11.0', '6.6')


def test_pictures_are_inside_the_page_and_what_is_missing_is_said(tmp_path: Path) -> None:
    fill(tmp_path, 'pictures', only=lambda run: run.name == 'sclip_vit-b16_voc21')
    folder = RunFolder.of(plan('pictures')[0], tmp_path)
    (folder.pictures / 'worst-1-comparison.png').unlink()
    page = text(write(tmp_path, suites=['paper']), 'report.html')
    assert page.count('src="data:image/webp;base64,') == 5
    assert page.count('The picture is not beside these results.') == 1


def test_link_out_of_the_folder_of_a_run_is_not_followed(tmp_path: Path) -> None:
    fill(tmp_path, 'pictures', only=lambda run: run.name == 'sclip_vit-b16_voc21')
    folder = RunFolder.of(plan('pictures')[0], tmp_path)
    secret = tmp_path / 'secret.png'
    file = folder.pictures / 'best-1-comparison.png'
    file.rename(secret)
    file.symlink_to(secret)
    page = text(write(tmp_path, suites=['paper']), 'report.html')
    assert page.count('src="data:image/webp;base64,') == 5


def test_pictures_are_reduced_until_the_page_can_hold_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, 'pictures', only=lambda run: run.benchmark == 'voc21')
    monkeypatch.setattr(albums, '_BYTES', 1)
    before = albums._uri
    sizes = []
    monkeypatch.setattr(albums, '_uri', lambda image, longest: sizes.append(longest) or before(image, longest))
    albums.albums(Source(tmp_path).views('paper', ['pictures']))
    assert sizes[-1] == 400


def test_page_leads_nowhere_else(toy_report: Path) -> None:
    page = text(toy_report, 'report.html')
    assert len(page) < 10_000_000
    links = re.findall(r'(?:href|src|action|srcset)="([^"]*)"', re.sub(r'<script.*?</script>', '', page, flags=re.S))
    assert {link.split(':')[0] if ':' in link else link[0] for link in links} == {'data', '#'}
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(set(ids)) == len(ids)
    assert {link[1:] for link in links if link.startswith('#')} <= set(ids)


def test_command_writes_where_it_is_told_to(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    options = '--work-dir', tmp_path, '--suite', 'paper', '--figures'
    run_in_process('reproduce', 'report', '--out', tmp_path / 'there', *options)
    assert str(tmp_path / 'there' / 'report.html') in capsys.readouterr().out
    assert {'report.html', 'report.md', 'tables'} == {path.name for path in (tmp_path / 'there').iterdir()}
