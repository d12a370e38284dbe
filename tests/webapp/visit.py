"""A server of the page, and a visitor with a browser."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers.chromium import Browser
from tests.helpers.world import ROOT, environment

# Seconds: the machine may be busy, and networks are loaded.
_PATIENCE = 180


@contextmanager
def served(log: Path) -> Iterator[str]:
    """The address of the page while tools/webapp.py runs. Args: log: for what it says."""
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, str(ROOT / 'tools/webapp.py'), '--no-browser', '--port', str(port)]
    # NiceGUI looks for it, and would be served for tests of its own kind.
    variables = {name: value for name, value in environment().items() if name != 'PYTEST_CURRENT_TEST'}
    with log.open('wb') as output:
        server = subprocess.Popen(command, env=variables, stdout=output, stderr=subprocess.STDOUT)
    try:
        until(lambda: server.poll() is not None or _answers(port), lambda: log.read_text())
        assert server.poll() is None, log.read_text()
        yield f'http://127.0.0.1:{port}/'
    finally:
        server.kill()
        server.wait()


def _answers(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(('127.0.0.1', port)) == 0


def until(condition, explain=lambda: '') -> Any:
    """Waits for something that is true, and returns it."""
    end = time.monotonic() + _PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f'waited in vain: {explain()}'
        time.sleep(0.1)
    return found


class Visitor:
    """Looks at the page and uses it like a person: with a mouse.

    Args:
        browser: The browser.
        address: Of the page.
        width, height: Of the window.
        phone: Whether it is one.
    """

    def __init__(
        self, browser: Browser, address: str, width: int = 1280, height: int = 900, phone: bool = False
    ) -> None:
        self.browser = browser
        browser.call(
            'Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        browser.requests, browser.complaints = [], []
        browser.call('Page.navigate', url=address)
        self.until("document.readyState == 'complete' && window.socket?.connected")

    def until(self, script: str) -> Any:
        return until(
            lambda: self.browser.run(script), lambda: f'{script}; {self.browser.run("document.body?.innerText")}'
        )

    def click(self, element: str, x: float = 0.5) -> None:
        """Clicks on an element. Args: element: a script that finds it; x: where, from 0 (left) to 1 (right)."""
        self.until(f'!!({element}) && ({element}).getBoundingClientRect().width > 0')
        self.browser.run(f"({element}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
        left, top, width, height = self.browser.run(
            f'(({{left, top, width, height}}) => [left, top, width, height])(({element}).getBoundingClientRect())'
        )
        place = {'x': left + x * width, 'y': top + height / 2}
        for kind in ('mouseMoved', 'mousePressed', 'mouseReleased'):
            button = {} if kind == 'mouseMoved' else {'button': 'left', 'clickCount': 1}
            self.browser.call('Input.dispatchMouseEvent', type=kind, **place, **button)

    def press(self, name: str) -> None:
        """Clicks on the button of a name."""
        self.click(f"[...document.querySelectorAll('button')].find((one) => one.innerText.includes({name!r}))")

    def upload(self, *files: Path) -> None:
        """Chooses files to upload."""
        root = self.browser.call('DOM.getDocument')['root']['nodeId']
        field = self.browser.call('DOM.querySelector', nodeId=root, selector='input[type=file]')['nodeId']
        self.browser.call('DOM.setFileInputFiles', nodeId=field, files=[str(file) for file in files])

    def panel(self, part: str) -> str:
        """The address of the image in a panel, empty if there is none yet."""
        return self.browser.run(f"document.querySelector('img[data-part={part}]')?.getAttribute('src') ?? ''")

    def text(self, part: str) -> str:
        return self.browser.run(f"document.querySelector('[data-part={part}]').innerText")
