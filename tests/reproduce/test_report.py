"""What the report says: our numbers, the paper's, and nothing that was not measured."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.world import run_in_process
from tests.reproduce.report_results import fill, made_up, save
from tpa_mmseg.launch import Progress
from tpa_mmseg.reproduce.experiments import EXPERIMENTS, plan
from tpa_mmseg.reproduce.folders import RunFolder, collect
from tpa_mmseg.reproduce.reference import compare_all
from tpa_mmseg.reproduce.report import write_report
from tpa_mmseg.reproduce.report.images import embed
from tpa_mmseg.reproduce.report.latex import escape
from tpa_mmseg.reproduce.report.plot import Axis, Plot, Point, Series
from tpa_mmseg.reproduce.runs import Run
from tpa_mmseg.reproduce.suite import SUITES

OURS = ('Base', 'TPA', 'Gain')


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite that looks like the paper's but is not."""
    suite = replace(SUITES['paper'], name='toy', rows=SUITES['paper'].rows[:2])
    monkeypatch.setitem(SUITES, 'toy', suite)


def numbers(out: Path, name: str = 'main-numbers', suite: str = 'paper') -> list[dict[str, str]]:
    with (out / 'tables' / suite / f'{name}.csv').open(encoding='utf-8', newline='') as file:
        return list(csv.DictReader(file))


def write(work_dir: Path, **options) -> Path:
    return write_report(work_dir / 'report', work_dir, **options)[0].parent


def text(out: Path, name: str) -> str:
    return (out / name).read_text(encoding='utf-8')


def main_run(benchmark: str = 'voc21') -> Run:
    return next(run for run in plan('main') if run.benchmark == benchmark)


def test_before_anything_has_run_there_are_no_numbers_but_the_papers(tmp_path: Path) -> None:
    out = write(tmp_path)
    rows = numbers(out)
    assert len(rows) == len(plan('main'))
    assert {row['State'] for row in rows} == {'not run'}
    assert {row[column] for row in rows for column in OURS} == {''}
    assert all(row["Paper's TPA"] for row in rows)
    # Every number of the page's main table has the word `paper` before it.
    table = re.search(r'id="paper-main".*?</table>', text(out, 'report.html'), re.S)[0]
    cells = re.findall(r'<td class="n[^>]*>(.*?)</td>', table)
    assert cells and all(re.fullmatch(r'(not run|0 of 8)<small>paper [-+.\d]+</small>', cell) for cell in cells)


def test_finished_run_stands_beside_the_papers_numbers(tmp_path: Path) -> None:
    run = main_run()
    save(tmp_path, made_up(run, 0, RunFolder.of(run, tmp_path), base=59.35, gain=2.5), run)
    row = numbers(write(tmp_path))[0]
    assert (row['Suite'], row['Host'], row['Backbone'], row['Benchmark']) == ('paper', 'SCLIP', 'ViT-B/16', 'VOC21')
    assert [float(row[column]) for column in OURS] == [59.35, 61.85, 2.5]
    assert [float(row[f"Paper's {name}"]) for name in ('base', 'TPA', 'gain')] == [59.1, 61.1, 2.0]
    assert [float(row[f'Difference, {name}']) for name in ('base', 'TPA', 'gain')] == [0.25, 0.75, 0.5]


@pytest.mark.parametrize(('tolerance', 'marked'), [(1.5, 2), (2.5, 1), (5.0, 0)])
def test_what_is_outside_the_tolerance_is_marked_everywhere(tmp_path: Path, tolerance: float, marked: int) -> None:
    run = main_run()
    # The paper has 59.1, 61.1 and a gain of 2.0: the host is 1 point off, TPA 3, and the gain 2.
    save(tmp_path, made_up(run, 0, RunFolder.of(run, tmp_path), base=60.1, gain=4.0), run)
    out = write(tmp_path, tolerance=tolerance)
    assert sum(not found.within(tolerance) for found in compare_all(collect('paper', tmp_path))) == marked
    main = re.search(r'id="paper-main".*?</table>', text(out, 'report.html'), re.S)[0]
    assert main.count('▲') == marked
    assert text(out, 'tables/paper/main.tex').count(r'\outside{') == marked
    assert f'{marked} of them differ by more than {tolerance:g} points' in text(out, 'report.md')


def test_average_is_taken_only_when_all_benchmarks_have_run(tmp_path: Path) -> None:
    missing = 'sclip_vit-l14_ade20k'
    fill(tmp_path, 'main', only=lambda run: run.row.host == 'sclip' and run.name != missing)
    out = write(tmp_path)
    averages = {}
    for line in text(out, 'report.md').splitlines():
        cells = [cell.strip() for cell in line.split('|')]
        if cells[1:2] == ['SCLIP'] and len(cells) == 13:
            averages[cells[2]] = cells[-2]
    ours = [float(row['Base']) for row in numbers(out) if (row['Host'], row['Backbone']) == ('SCLIP', 'ViT-B/16')]
    # The means of the cells that the paper prints are 38.16 and 29.02.
    assert averages['ViT-B/16'].startswith(f'{sum(ours) / 8:.1f} (paper 38.2, ')
    assert averages['ViT-L/14'] == '*7 of 8* (paper 29.0)'


def test_suite_that_is_not_the_papers_is_marked_and_has_none_of_its_numbers(tmp_path: Path, toy: None) -> None:
    for experiment in EXPERIMENTS:
        fill(tmp_path, experiment, 'toy')
    out = write(tmp_path, suites=['toy'])
    page = text(out, 'report.html')
    assert 'no number of the paper stands beside them' in page
    assert not re.search(r'<small>(paper|[-+.\d]+ \()', page)
    assert page.count('<span class="badge">toy suite</span>') > page.count('<table>')
    assert not [column for column in numbers(out, suite='toy')[0] if 'Paper' in column or 'Difference' in column]
    assert {row['Suite'] for row in numbers(out, suite='toy')} == {'toy'}
    for file in (out / 'tables' / 'toy').glob('*.tex'):
        table = file.read_text(encoding='utf-8').split(r'\begin{table}')[1]
        assert r'\caption{\textbf{Toy suite, not a benchmark of the paper.}' in table
        assert r'\beside' not in table and 'paper ' not in table.split(r'\midrule', 1)[1]


def test_other_worlds_are_reported_once_something_of_them_has_run(tmp_path: Path, toy: None) -> None:
    assert 'id="toy"' not in text(write(tmp_path), 'report.html')
    fill(tmp_path, 'cost', 'toy')
    assert 'id="toy"' in text(write(tmp_path), 'report.html')


def test_failed_run_says_why(tmp_path: Path) -> None:
    folder = RunFolder.of(main_run(), tmp_path)
    folder.note(Progress(error='data/VOC <2012> is missing: prepare it.'))
    out = write(tmp_path)
    assert 'data/VOC &lt;2012&gt; is missing: prepare it.' in text(out, 'report.html')
    assert 'data/VOC <2012> is missing: prepare it.' in text(out, 'report.md')
    assert numbers(out)[0]['State'] == 'failed'


def test_damaged_result_is_named_beside_the_others(tmp_path: Path) -> None:
    fill(tmp_path, 'main', only=lambda run: run.row.host == 'sclip')
    folder = RunFolder.of(main_run(), tmp_path)
    folder.results.write_text('{', encoding='utf-8')
    out = write(tmp_path)
    assert f'{folder.results} is not a readable result' in text(out, 'report.md')
    assert [row['State'] for row in numbers(out)[:2]] == ['failed', 'done']


def test_number_of_fewer_images_than_planned_says_so(tmp_path: Path) -> None:
    fill(tmp_path, 'main', only=lambda run: run.row.host == 'sclip')
    run = main_run()
    save(tmp_path, replace(made_up(run, 0, RunFolder.of(run, tmp_path)), images=20), run)
    out = write(tmp_path)
    assert [row['State'] for row in numbers(out)[:2]] == ['done, 20 of 1,449 images', 'done']
    assert 'with the number of images that is planned: sclip_vit-b16_voc21 (20 of 1,449 images).' in text(
        out, 'report.md'
    )
    table = re.search(r'id="paper-main".*?</table>', text(out, 'report.html'), re.S)[0]
    assert table.count('<small>20 of 1,449 images</small>') == table.count('<small>not all images</small>') == 3
    assert text(out, 'tables/paper/main.tex').count(', 20 of 1,449 images}') == 3


def test_average_over_fewer_benchmarks_than_others_says_over_how_many(tmp_path: Path) -> None:
    fill(tmp_path, 'composition')
    rows = [line for line in text(write(tmp_path), 'report.md').splitlines() if line.startswith('| NACLIP at 224')]
    others = [line for line in text(tmp_path / 'report', 'report.md').splitlines() if line.startswith('| ProxyCLIP')]
    assert rows and all('over 7 of 8' in line for line in rows[:2])
    assert others and not any('over ' in line for line in others)


def test_classes_are_expected_of_benchmarks_that_are_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = replace(SUITES['paper'], name='toy', has=lambda run: run.benchmark in ('voc21', 'ade20k'))
    monkeypatch.setitem(SUITES, 'toy', suite)
    fill(tmp_path, 'main', 'toy', lambda run: run.row.host == 'naclip')
    assert re.search(
        r'which classes NACLIP ViT-B/16 gains with TPA · 2 of 2 runs done', text(write(tmp_path), 'report.html')
    )


def test_latex_has_the_papers_rows_in_its_order_and_whole_lines(tmp_path: Path) -> None:
    fill(tmp_path, 'main')
    table = text(write(tmp_path), 'tables/paper/main.tex')
    body = table.split(r'\midrule', 1)[1].split(r'\bottomrule')[0]
    lines = [line for line in body.splitlines() if line.endswith(r'\\')]
    assert {line.count('&') for line in lines} == {10}
    hosts = [tuple(cell.strip() for cell in line.split('&')[:2]) for line in lines[::3]]
    suite = SUITES['paper']
    assert hosts == [(suite.hosts[host], suite.backbones[backbone]) for host, _, backbone in suite.rows]
    assert table.count('{') == table.count('}')
    assert r'\beside{59.1}{59.1}{$+0.0$}' in lines[0]


def test_latex_prints_special_characters() -> None:
    assert escape(r'50 % of A_b & {c} \ #1 ≤ 2') == r'50 \% of A\_b \& \{c\} \textbackslash{} \#1 $\leq$ 2'


def test_report_says_what_labels_were_used_for(tmp_path: Path) -> None:
    for experiment in ('overlap', 'repetition'):
        fill(tmp_path, experiment)
    out = write(tmp_path)
    for name in ('report.html', 'report.md'):
        assert 'Labels were used only to make these splits' in text(out, name)
        assert 'labels are used for this statistic only' in text(out, name)


def test_every_figure_is_there_and_is_xml(tmp_path: Path) -> None:
    for experiment in ('main', 'k', 'bank-size', 'repetition', 'overlap'):
        fill(tmp_path, experiment)
    figures = {file.stem: ET.parse(file).getroot() for file in (write(tmp_path) / 'figures' / 'paper').glob('*.svg')}
    benchmarks = list(SUITES['paper'].benchmarks)
    assert set(figures) == {
        *('k', 'bank-size', 'overlap'),
        *(f'repetition-{name}' for name in benchmarks),
        *(f'classes-{name}-{axis}' for name in benchmarks for axis in ('base', 'support')),
    }
    titles = [title.text for title in figures['classes-voc21-base'].iter('{http://www.w3.org/2000/svg}title')]
    assert len(titles) == 5 and not any('never seen' in title for title in titles)
    assert titles[0] == 'sky & cloud: 0.0 → 3.0 (+3.0), 10 pixels'


def test_times_come_with_their_spread_and_the_papers(tmp_path: Path) -> None:
    fill(tmp_path, 'cost')
    out = write(tmp_path)
    section = re.search(r'id="paper-cost".*?</table>', text(out, 'report.html'), re.S)[0]
    assert '10<small>9.5–11</small><small>paper 6.6</small>' in section
    assert '<small>paper ≤ 0.5</small>' in section
    assert 'measured on Imaginary device, with images of 448 × 448 and 21 classes' in section
    assert numbers(out, 'cost-numbers')[0]['Lower quartile'] == '9.5'


def test_costs_of_images_of_several_sizes_come_with_their_range(tmp_path: Path) -> None:
    run = plan('cost')[0]
    result = made_up(run, 0, RunFolder.of(run, tmp_path))
    cost = replace(result.cost, image_sizes=((224, 336), (448, 600)), cache_mb_range=(0.2, 0.6))
    save(tmp_path, replace(result, cost=cost), run)
    page = text(write(tmp_path), 'report.html')
    assert 'with images of 448 × 448 (median; 224 × 336 to 448 × 600) and 21 classes' in page
    assert '0.4<small>0.2–0.6</small>' in page


def test_pictures_are_inside_the_page_and_not_too_large(tmp_path: Path) -> None:
    fill(tmp_path, 'pictures', only=lambda run: run.benchmark == 'voc21')
    folder = RunFolder.of(next(iter(plan('pictures'))), tmp_path)
    (folder.pictures / 'worst-1-anchors.png').unlink()
    page = text(write(tmp_path), 'report.html')
    assert page.count('src="data:image/webp;base64,') == 3
    assert 'The picture is not in its place any more: worst-1-anchors.png' in page
    assert embed(folder.pictures / 'best-1-comparison.png')[1:] == (1600, 320)


class _Balance(HTMLParser):
    """Raises where a tag is closed that is not the last one opened."""

    _VOID = ('meta', 'link', 'img', 'line', 'circle', 'polyline', 'polygon')

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.links += [value for name, value in attrs if name in ('href', 'src', 'action', 'srcset')]
        if tag not in self._VOID[:3]:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        assert tag in self._VOID

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_sound_and_leads_nowhere_else(tmp_path: Path, toy: None) -> None:
    for experiment in EXPERIMENTS:
        fill(tmp_path, experiment, 'toy')
    page = text(write(tmp_path), 'report.html')
    parser = _Balance()
    parser.feed(page)
    assert parser.open == []
    assert {link.split(':')[0] if ':' in link else link[0] for link in parser.links} == {'data', '#'}
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(set(ids)) == len(ids)
    assert {link[1:] for link in parser.links if link.startswith('#')} <= set(ids)
    assert set(re.findall(r'https?://[^"\s<]+', page)) == {'http://www.w3.org/2000/svg'}
    assert 'url(' not in page and '@import' not in page


def test_command_writes_where_it_is_told_to(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    run_in_process('reproduce', 'report', '--out', tmp_path / 'there', '--work-dir', tmp_path, '--suite', 'paper')
    assert str(tmp_path / 'there' / 'report.html') in capsys.readouterr().out
    assert {'report.html', 'report.md', 'tables'} == {path.name for path in (tmp_path / 'there').iterdir()}


def _marks(svg: str) -> Iterator[tuple[float, float]]:
    for x, y in re.findall(r'<circle cx="([-\d.]+)" cy="([-\d.]+)"', svg):
        yield float(x), float(y)


@given(
    values=st.lists(st.tuples(st.floats(1, 1e9), st.floats(-100, 100, allow_subnormal=False)), min_size=1, max_size=20),
    log=st.booleans(),
)
def test_points_of_a_plot_are_inside_it_and_in_order(values: list[tuple[float, float]], log: bool) -> None:
    points = tuple(Point(x, y, 'a & b') for x, y in values)
    svg = Plot('<title>', Axis('x', log=log), Axis('y'), (Series('', points, line=False),)).svg()
    width, height = (float(side) for side in re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())
    marks = list(_marks(svg))
    assert len(marks) == len(values)
    assert all(0 <= x <= width and 0 <= y <= height for x, y in marks)
    for axis, sign in ((0, 1), (1, -1)):
        order = sorted(range(len(values)), key=lambda index: sign * values[index][axis])
        places = [marks[index][axis] for index in order]
        assert places == sorted(places)
    ET.fromstring(svg)
