"""The page of the report in a real browser."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.helpers.browser import browser, page  # noqa: F401
from tests.reproduce.report_results import fill
from tpa_mmseg.reproduce.experiments import EXPERIMENTS
from tpa_mmseg.reproduce.report import write_report
from tpa_mmseg.reproduce.sources import Source
from tpa_mmseg.reproduce.suite import SUITES

pytestmark = pytest.mark.slow

_CONTRAST = """
([text, ground]) => {
  const light = (element, property) => {
    const parts = getComputedStyle(document.querySelector(element))[property].match(/[\\d.]+/g).slice(0, 3);
    const [r, g, b] = parts.map((value) => value / 255)
      .map((value) => value <= 0.04 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const both = [light(text, 'color'), light(ground, 'backgroundColor')].sort((a, b) => a - b);
  return [(both[1] + 0.05) / (both[0] + 0.05), light(ground, 'backgroundColor')];
}
"""


@pytest.fixture(scope='module')
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a page with all experiments of a made-up suite, and the paper's with nothing in it."""
    folder = tmp_path_factory.mktemp('page')
    suite = replace(SUITES['paper'], name='toy', rows=SUITES['paper'].rows[:3], ablation_benchmarks=('voc21',))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, 'toy', suite)
        for experiment in EXPERIMENTS:
            fill(folder, experiment, 'toy', lambda run: run.benchmark in ('voc21', 'ade20k'))
        return write_report(Source(folder), folder / 'report', formats=())[0].resolve().as_uri()


def test_page_asks_for_nothing_but_itself_and_the_browser_has_no_complaint(page: Page, report: str) -> None:  # noqa: F811
    requests, complaints = [], []
    page.on('request', lambda request: requests.append(request.url))
    page.on('console', lambda message: complaints.append(message.text))
    page.on('pageerror', lambda error: complaints.append(str(error)))
    page.goto(report)
    for plot in page.locator('.plot').all():
        plot.scroll_into_view_if_needed()
        expect(plot.locator('svg')).to_be_visible()
    page.locator('#toy-pictures img').first.scroll_into_view_if_needed()
    assert [url for url in requests if not url.startswith('data:')] == [report]
    assert complaints == []


def test_name_of_a_class_is_shown_at_its_point(page: Page, report: str) -> None:  # noqa: F811
    page.goto(report)
    plot = page.locator('#toy-classes .plot').first
    plot.scroll_into_view_if_needed()
    plot.locator('.mark-symbol.role-mark path').last.hover()
    tip = page.locator('#vg-tooltip-element')
    expect(tip).to_be_visible()
    expect(tip).to_contain_text('net <wire>')
    expect(tip).to_contain_text('−2.00')


def test_pictures_open_large_and_close_again(page: Page, report: str) -> None:  # noqa: F811
    page.goto(report)
    page.locator('#toy-pictures .enlarge').first.click()
    expect(page.locator('#large')).to_be_visible()
    assert page.locator('#large img').evaluate('image => image.decode().then(() => image.naturalWidth)') == 1600
    page.keyboard.press('Escape')
    expect(page.locator('#large')).to_be_hidden()


def test_slider_moves_the_border_between_host_and_tpa(page: Page, report: str) -> None:  # noqa: F811
    page.goto(report)
    slider = page.locator('#toy-pictures .slider').first
    slider.scroll_into_view_if_needed()
    box = slider.locator('div').bounding_box()
    page.mouse.click(box['x'] + 0.25 * box['width'], box['y'] + box['height'] / 2)
    shown = slider.locator('.before').evaluate('image => getComputedStyle(image).clipPath')
    hidden = float(shown.split('calc(')[1].split('%')[0]) if 'calc(' in shown else float(shown.split()[1].rstrip('%'))
    assert 70 < hidden < 80
    slider.locator('input').press('ArrowRight')
    assert slider.locator('.before').evaluate('image => getComputedStyle(image).clipPath') != shown


def test_on_a_phone_tables_scroll_in_their_boxes_and_the_page_does_not(browser: Browser, report: str) -> None:  # noqa: F811
    context = browser.new_context(viewport={'width': 360, 'height': 740}, is_mobile=True, has_touch=True)
    phone = context.new_page()
    phone.goto(report)
    phone.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    plot = phone.locator('#toy-k .plot')
    plot.scroll_into_view_if_needed()
    expect(plot.locator('svg')).to_be_visible()
    assert plot.locator('svg').bounding_box()['width'] <= 360
    assert phone.evaluate('document.documentElement.scrollWidth') <= 360
    needed, given = phone.locator('#toy-main .scroll').first.evaluate('box => [box.scrollWidth, box.clientWidth]')
    assert needed > given and given <= 360
    context.close()


def test_text_is_readable_in_both_color_schemes_and_figures_follow(page: Page, report: str) -> None:  # noqa: F811
    page.goto(report)
    plot = page.locator('#toy-k .plot')
    plot.scroll_into_view_if_needed()
    grounds, inks = {}, {}
    for scheme in ('light', 'dark'):
        page.emulate_media(color_scheme=scheme)
        for pair in (('body', 'body'), ('.soft', 'body'), ('.section', '.section'), ('.badge', '.badge')):
            ratio, grounds[scheme] = page.evaluate(_CONTRAST, list(pair))
            assert ratio >= 4.5, (scheme, pair)
        _, grounds[scheme] = page.evaluate(_CONTRAST, ['body', 'body'])
        ink = 'rgb(163, 173, 186)' if scheme == 'dark' else 'rgb(91, 100, 114)'
        expect(plot.locator('.role-axis-label text').first).to_have_css('fill', ink)
        inks[scheme] = ink
    assert grounds['dark'] < 0.05 < 0.8 < grounds['light']


def test_print_has_every_figure(page: Page, report: str) -> None:  # noqa: F811
    page.goto(report)
    plots = page.locator('.plot')
    assert page.locator('.plot svg').count() < plots.count()
    page.pdf()
    assert page.locator('.plot svg').count() == plots.count()


def test_click_and_enter_sort_a_table_and_leave_what_has_no_number_at_the_end(page: Page, report: str) -> None:  # noqa: F811
    page.goto(report)
    more = page.locator('#toy-classes .more').first
    more.locator('summary').click()
    head = more.locator('th').nth(1)
    column = 'rows => rows.map((row) => row.cells[1].textContent)'
    orders = []
    for sort in (head.click, lambda: head.press('Enter')):
        sort()
        orders.append(more.locator('tbody tr').evaluate_all(column))
    falling, rising = orders
    assert falling == ['50', '40', '30', '10', '0', '–'] and rising == ['0', '10', '30', '40', '50', '–']
    more.locator('th').nth(0).click()
    names = more.locator('tbody tr').evaluate_all('rows => rows.map((row) => row.cells[0].textContent)')
    assert names == sorted(names)


def test_link_opens_a_section_in_which_nothing_has_run(page: Page, report: str) -> None:  # noqa: F811
    page.goto(report)
    section = page.locator('#paper-main')
    expect(section).not_to_have_attribute('open', '')
    page.locator('a[href="#paper-main"]').click()
    expect(section).to_have_attribute('open', '')


def test_summary_says_how_many_rows_agree(page: Page, report: str) -> None:  # noqa: F811
    page.goto(report)
    texts = [' '.join(text.split()) for text in page.locator('#paper .verdicts li').all_inner_texts()]
    assert texts == [
        '0 rows agree with the paper',
        '0 rows do not',
        '0 rows have run in part',
        '87 rows have not run',
    ]
