"""A page in headless Chromium, driven by playwright: import the fixtures ``browser`` and ``page``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = shutil.which('chromium')
# The default of five seconds is too short on a machine that does something else, too.
expect.set_options(timeout=30_000)


@pytest.fixture(scope='module')
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium to look at the page with: install Debian's package chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=['--no-sandbox', '--disable-gpu'])
        yield found
        found.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A window of a desktop."""
    found = browser.new_page(viewport={'width': 1280, 'height': 900})
    yield found
    found.close()
