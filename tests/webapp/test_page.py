"""The page in a real browser."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.helpers.chromium import BROWSER, Browser
from tests.webapp.visit import Visitor, served
from tpa_mmseg.webapp.examples import read_examples

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec('nicegui') is None, reason="no NiceGUI: pip install 'tpa_mmseg[webapp]'"),
    pytest.mark.skipif(
        BROWSER is None, reason="no Chromium to look at the page with: install Debian's package chromium"
    ),
]


@pytest.fixture(scope='module')
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp('server') / 'log.txt') as found:
        yield found


@pytest.fixture(scope='module')
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


def test_from_a_click_on_an_example_to_the_changed_labels(browser: Browser, address: str) -> None:
    visitor = Visitor(browser, address)
    visitor.press('Painted scenes')
    visitor.until("document.querySelector('img[data-part=tpa]')?.naturalWidth > 0")
    assert visitor.text('model').startswith('Miniature weights')
    assert visitor.text('bank').startswith('The bank of 8 images')
    before = {part: visitor.panel(part) for part in ('host', 'tpa', 'difference')}
    changed = visitor.text('changed')

    visitor.click("document.querySelector('[data-part=alpha]')", x=0.01)
    visitor.until(f"document.querySelector('[data-part=changed]').innerText != {changed!r}")
    after = {part: visitor.panel(part) for part in before}
    assert after['host'] == before['host']
    assert after['tpa'] != before['tpa'] and after['difference'] != before['difference']

    # All the way to the right is the host alone.
    visitor.click("document.querySelector('[data-part=alpha]')", x=0.99)
    visitor.until("document.querySelector('[data-part=changed]').innerText.includes(' 0.0 %')")
    assert visitor.panel('tpa') == before['host']
    assert browser.complaints == []
    assert not [url for url in browser.requests if not url.startswith((address, 'data:', 'ws://127.0.0.1:'))]


def test_error_that_a_visitor_can_fix_is_shown_on_the_page(browser: Browser, address: str) -> None:
    visitor = Visitor(browser, address)
    visitor.press('Segment')
    visitor.until("document.querySelector('[role=alert]')?.innerText.includes('No images')")


def test_images_are_uploaded_broken_ones_are_named_and_masks_are_downloaded(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    good, broken = tmp_path / '<b>scene.png', tmp_path / 'broken.png'
    read_examples()[0].sources()[0].resized((128, 160)).save(good)
    broken.write_bytes(b'not an image')
    visitor = Visitor(browser, address)
    # The example chooses the backbone that comes with the package.
    visitor.press('Painted scenes')
    visitor.until("document.querySelector('img[data-part=tpa]')?.naturalWidth > 0")
    visitor.press('Remove all')
    visitor.until("document.querySelector('[data-part=count]').innerText.startsWith('0 images of')")
    visitor.upload(good, broken)
    visitor.until("document.querySelector('[role=alert]')?.innerText.startsWith('broken.png cannot be read')")
    visitor.until("document.querySelector('[data-part=count]').innerText.startsWith('1 image of')")

    visitor.click("document.querySelector('textarea')")
    browser.run("document.querySelector('textarea').select()")
    browser.call('Input.insertText', text='grass; lawn\nwater\nflower')
    visitor.press('Segment')
    visitor.until("document.querySelector('[data-part=bank]').innerText.startsWith('The bank of 1 images')")
    assert visitor.text('model')
    # What is saved passes through here.
    browser.run('window.saved = []; URL.createObjectURL = (content) => { saved.push(content.size); return "#"; }; 0')
    visitor.press('Download masks')
    visitor.until('saved.length == 1 && saved[0] > 1000')
    visitor.press('Download bank')
    visitor.until('saved.length == 2 && saved[1] > 1000')


def test_on_a_phone_nothing_is_wider_than_the_screen(browser: Browser, address: str) -> None:
    visitor = Visitor(browser, address, width=360, height=740, phone=True)
    visitor.press('Things before a background')
    visitor.until("document.querySelector('img[data-part=tpa]')?.naturalWidth > 0")
    assert browser.run('document.documentElement.scrollWidth') <= 360


def test_other_names_for_this_machine_do_not_get_the_page(address: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(address, headers={'Host': 'elsewhere.example'}))
    assert refused.value.code == 400
