"""The site builds without warnings and without a network, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.pages import PAGES
from tests.helpers.world import ROOT, environment

#: Headings of troubleshooting.md are words of messages; these files have the messages.
SOURCES = ''.join(path.read_text(encoding='utf-8') for path in (ROOT / 'tpa_mmseg').rglob('*.py'))


class Page(HTMLParser):
    """Collects the links, what is loaded, and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or '' for name, value in attrs}
        self.anchors |= {given[key] for key in ('id', 'name') if key in given}
        if tag == 'a' and 'href' in given:
            self.links.append(given['href'])
        self.loaded += [given[key] for key in ('src', 'href') if tag in ('script', 'img', 'link') and key in given]


@pytest.fixture(scope='module')
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """Every page of the site, built with warnings as errors."""
    folder = tmp_path_factory.mktemp('site')
    command = [sys.executable, '-m', 'sphinx', '-q', '-W', '--keep-going', '-c', 'docs', '-d', str(folder / 'trees')]
    built = subprocess.run(
        [*command, '.', str(folder / 'html')], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=600
    )
    assert built.returncode == 0, built.stderr[-5000:]
    return {path: Page(path.read_text(encoding='utf-8')) for path in (folder / 'html').rglob('*.html')}


@pytest.mark.slow
def test_links_lead_somewhere(site: dict[Path, Page]) -> None:
    broken = []
    for path, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = target in site and (not parts.fragment or unquote(parts.fragment) in site[target].anchors)
            if not known and not (target.is_file() and not parts.fragment):
                broken.append(f'{path.name}: {link}')
    assert len(site) > 35 and broken == []


@pytest.mark.slow
def test_nothing_is_loaded_from_the_web(site: dict[Path, Page]) -> None:
    assert [each for page in site.values() for each in page.loaded if urlsplit(each).netloc] == []


def test_every_link_of_a_checkout_leads_to_a_file() -> None:
    broken = []
    for path in PAGES:
        text = re.sub(r'```.*?```', '', path.read_text(encoding='utf-8'), flags=re.DOTALL)
        for link in re.findall(r'\]\(([^)\s]+)\)', text) + re.findall(r'(?:href|src)="([^"]+)"', text):
            target = urlsplit(link).path
            if not urlsplit(link).scheme and target and not (path.parent / target).exists():
                broken.append(f'{path.relative_to(ROOT)}: {link}')
    assert broken == []


def test_headings_of_troubleshooting_are_words_of_messages() -> None:
    page = (ROOT / 'docs/troubleshooting.md').read_text(encoding='utf-8')
    headings = re.findall(r'^## (.*)$', page, re.MULTILINE)
    assert len(headings) > 15
    assert [heading for heading in headings if not re.search(rf"(?:['\"]|}} ){re.escape(heading)}\b", SOURCES)] == []


def test_readme_is_short() -> None:
    assert len((ROOT / 'README.md').read_text(encoding='utf-8').splitlines()) <= 110
