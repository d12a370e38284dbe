"""The page of the report in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.chromium import BROWSER, Browser
from tests.reproduce.report_results import fill
from tpa_mmseg.reproduce.experiments import EXPERIMENTS
from tpa_mmseg.reproduce.report import write_report
from tpa_mmseg.reproduce.suite import SUITES

# How often a pointer is moved before a page counts as silent.
_PATIENCE = 50

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        BROWSER is None, reason="no Chromium to look at the page with: install Debian's package chromium"
    ),
]

# VOC21 of all hosts with TPA in the main table, None where it is no number.
_VOC21 = """
[...document.querySelector('#toy-main table').tBodies].map((body) => {
  const number = parseFloat(body.rows[1].cells[2].textContent);
  return Number.isNaN(number) ? null : number;
})
"""
_LUMINANCE = """
(element, property) => {
  const [r, g, b] = getComputedStyle(document.querySelector(element))[property].match(/[\\d.]+/g)
    .map((value) => value / 255).map((value) => value <= 0.04 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
"""


@pytest.fixture(scope='module')
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture(scope='module')
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with all experiments of a made-up suite, three hosts in its main table, one run of them missing."""
    folder = tmp_path_factory.mktemp('page')
    suite = replace(SUITES['paper'], name='toy', rows=SUITES['paper'].rows[:3], ablation_benchmarks=('voc21',))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, 'toy', suite)
        for experiment in EXPERIMENTS:
            fill(folder, experiment, 'toy', lambda run: run.experiment != 'main' or run.name != 'sclip_vit-b16_voc21')
        return write_report(folder / 'report', folder)[0]


def _place(browser: Browser, selector: str) -> tuple[float, float]:
    """Scrolls an element into view. Returns its center."""
    script = f"""(async () => {{
      document.documentElement.style.scrollBehavior = 'auto';
      const element = document.querySelector({selector!r});
      // What comes into view is laid out only then, and moves what is below it.
      for (let frame = 0; frame < 6; frame += 1) {{
        element.scrollIntoView({{block: 'center'}});
        await new Promise(requestAnimationFrame);
      }}
      const box = element.getBoundingClientRect();
      return [box.left + box.width / 2, box.top + box.height / 2];
    }})()"""
    return tuple(browser.run(script))


def test_page_asks_for_nothing_but_itself_and_the_browser_has_no_complaint(browser: Browser, page: Path) -> None:
    browser.show(page)
    assert [url for url in browser.requests if not url.startswith('data:')] == [page.resolve().as_uri()]
    assert browser.complaints == []


def test_pictures_are_shown(browser: Browser, page: Path) -> None:
    browser.show(page)
    _place(browser, '#toy-pictures img')
    assert browser.run("document.querySelector('#toy-pictures img').decode().then(() => true, () => false)")


def test_on_a_phone_tables_scroll_in_their_boxes_and_the_page_does_not(browser: Browser, page: Path) -> None:
    browser.show(page, width=360, height=740, phone=True)
    browser.run("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    assert browser.run('document.documentElement.scrollWidth') <= 360
    _place(browser, '#toy-main table')
    box = "document.querySelector('#toy-main .scroll')"
    needed, given = browser.run(f'[{box}.scrollWidth, {box}.clientWidth]')
    assert needed > given and given <= 360


def test_on_a_phone_names_leave_most_of_the_width_to_numbers(browser: Browser, page: Path) -> None:
    browser.show(page, width=360, height=740, phone=True)
    browser.run("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    _place(browser, '#toy-components table')
    names = "[...document.querySelectorAll('#toy-components tbody th')].map((cell) => cell.offsetWidth)"
    widths = browser.run(names)
    assert widths and max(widths) <= 0.4 * 360


def test_text_is_readable_in_both_color_schemes(browser: Browser, page: Path) -> None:
    paper = {}
    for dark in (False, True):
        browser.show(page, dark=dark)
        ratios = {}
        for text, ground in (('body', 'body'), ('.made', 'body'), ('.section', '.section'), ('.badge', '.badge')):
            ink, behind = (
                browser.run(f'({_LUMINANCE})({element!r}, {name!r})')
                for element, name in ((text, 'color'), (ground, 'backgroundColor'))
            )
            ratios[text] = (max(ink, behind) + 0.05) / (min(ink, behind) + 0.05)
        assert min(ratios.values()) >= 4.5, (dark, ratios)
        paper[dark] = browser.run(f"({_LUMINANCE})('body', 'backgroundColor')")
    assert paper[True] < 0.05 < 0.8 < paper[False]


def test_click_sorts_hosts_by_tpa_and_leaves_what_has_not_run_at_the_end(browser: Browser, page: Path) -> None:
    browser.show(page)
    orders = []
    for _ in range(2):
        browser.run("document.querySelectorAll('#toy-main thead button')[2].click()")
        orders.append(browser.run(_VOC21))
    (*falling, last), (*rising, also_last) = orders
    assert last is None and also_last is None
    assert falling == sorted(falling, reverse=True) and rising == falling[::-1] and falling != rising


def test_rows_of_a_host_stay_together_when_sorted(browser: Browser, page: Path) -> None:
    browser.show(page)
    browser.run("document.querySelector('#toy-main thead button').click()")
    labels = (
        "[...document.querySelector('#toy-main table').querySelectorAll('tbody th')].map((cell) => cell.textContent)"
    )
    assert browser.run(labels) == ['ClearCLIP', '+ TPA', 'gain', 'NACLIP', '+ TPA', 'gain', 'SCLIP', '+ TPA', 'gain']


def test_tables_are_sorted_with_the_keyboard(browser: Browser, page: Path) -> None:
    browser.show(page)
    browser.run("document.querySelector('#toy-main .scroll').focus()")
    for key, sort in (('Tab', 'none'), ('Enter', 'ascending'), ('Enter', 'descending')):
        browser.press(key)
        assert browser.run("document.activeElement.closest('th').getAttribute('aria-sort')") == sort
    assert browser.run('document.activeElement.textContent') == 'Host'


@pytest.mark.parametrize('phone', [False, True], ids=['mouse', 'touch'])
def test_name_of_a_class_is_shown_at_its_point(browser: Browser, page: Path, phone: bool) -> None:
    browser.show(page, width=390 if phone else 1280, phone=phone)
    assert browser.run("document.getElementById('tip').hidden")
    # A page that was just shown may not take a pointer's first move, on a busy machine least of all.
    for _ in range(_PATIENCE):
        place = _place(browser, '#toy-classes .plot .points.s1 [data-tip*=wire]')
        (browser.touch if phone else browser.point_at)(*place)
        if not browser.run("document.getElementById('tip').hidden"):
            break
        browser.run('new Promise((done) => setTimeout(done, 200))')
    assert not browser.run("document.getElementById('tip').hidden")
    assert browser.run("document.getElementById('tip').textContent").startswith('net <wire>: 50.0 → 48.0 (-2.0)')


def test_link_opens_a_section_in_which_nothing_has_run(browser: Browser, page: Path) -> None:
    browser.show(page)
    section = "document.getElementById('paper-main')"
    assert not browser.run(f'{section}.open')
    browser.run('document.querySelector(\'a[href="#paper-main"]\').click()')
    # The event of the address comes after the click.
    browser.run('new Promise((done) => setTimeout(done, 200))')
    assert browser.run(f'{section}.open')
