"""Drives a headless Chromium over a pair of pipes, with the standard library alone."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

#: Debian's package is called so; other systems have other names.
BROWSER = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), None)
_FLAGS = ('--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--remote-debugging-pipe')
# Seconds without a word after which the browser counts as dead: a busy machine is slow.
_PATIENCE = 60
# The browser reads from descriptor 3 and writes to 4.
_LAUNCHER = (
    'import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])'
)


def _pipe() -> list[int]:
    """Both ends of a pipe, with numbers out of the way of 3 and 4."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved


class Browser:
    """A browser with one page, which is closed at the end of the context."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._out = _pipe()
        self._in, theirs_out = _pipe()
        ends = theirs_in, theirs_out
        browser = [BROWSER, *_FLAGS, f'--user-data-dir={self._profile.name}', 'about:blank']
        command = [sys.executable, '-c', _LAUNCHER, *map(str, ends), *browser]
        self._process = subprocess.Popen(command, pass_fds=ends, stderr=subprocess.DEVNULL)
        for end in ends:
            os.close(end)
        self._unread, self._number, self._session = b'', 0, None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        try:
            target = self.call('Target.createTarget', url='about:blank')['targetId']
            self._session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
            for domain in ('Page', 'Network', 'Runtime', 'Log'):
                self.call(f'{domain}.enable')
        except BaseException:
            self.close()
            raise

    def show(self, file: Path, width: int = 1280, height: int = 900, phone: bool = False, dark: bool = False) -> None:
        """Loads a file.

        Args:
            file: What is shown.
            width, height: Of the window, in CSS pixels.
            phone: Whether it behaves like one: a viewport, touch instead of a mouse.
            dark: Whether dark colors are preferred.
        """
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call('Emulation.setTouchEmulationEnabled', enabled=phone)
        scheme = {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}
        self.call('Emulation.setEmulatedMedia', features=[scheme])
        # Through an empty page: the same file again, with another mark behind '#', would not be loaded.
        for url in ('about:blank', file.resolve().as_uri()):
            self.requests, self.complaints = [], []
            self.call('Page.navigate', url=url)
            self._wait_for('Page.loadEventFired')

    def call(self, method: str, **params) -> dict:
        """Calls a method of the browser and waits for its answer."""
        self._number += 1
        message = {'id': self._number, 'method': method, 'params': params}
        if self._session is not None:
            message['sessionId'] = self._session
        os.write(self._out, json.dumps(message).encode() + b'\0')
        while (answer := self._read()).get('id') != self._number:
            pass
        if 'error' in answer:
            raise RuntimeError(f'{method}: {answer["error"]["message"]}')
        return answer['result']

    def _wait_for(self, event: str) -> None:
        while self._read().get('method') != event:
            pass

    def _read(self) -> dict:
        """The next message; what a page asks for and complains about is noted."""
        while b'\0' not in self._unread:
            if not select.select([self._in], [], [], _PATIENCE)[0]:
                raise RuntimeError(f'Chromium has said nothing for {_PATIENCE} seconds.')
            found = os.read(self._in, 1 << 20)
            if not found:
                raise RuntimeError('Chromium is gone.')
            self._unread += found
        text, _, self._unread = self._unread.partition(b'\0')
        message = json.loads(text)
        params = message.get('params', {})
        if message.get('method') == 'Network.requestWillBeSent':
            self.requests.append(params['request']['url'])
        elif message.get('method') == 'Runtime.exceptionThrown':
            self.complaints.append(params['exceptionDetails']['text'])
        elif message.get('method') == 'Log.entryAdded':
            self.complaints.append(params['entry']['text'])
        return message

    def run(self, script: str) -> Any:
        """The value of an expression in the page; of a promise, what it promises."""
        found = self.call('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in found:
            raise RuntimeError(found['exceptionDetails']['exception']['description'])
        return found['result'].get('value')

    def press(self, key: str) -> None:
        """Presses a key. Args: key, such as ``Tab`` or ``Enter``."""
        codes = {'Tab': 9, 'Enter': 13}
        text = {'text': '\r'} if key == 'Enter' else {}
        for kind in ('keyDown', 'keyUp'):
            self.call('Input.dispatchKeyEvent', type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **text)

    def point_at(self, x: float, y: float) -> None:
        """Moves the mouse."""
        self.call('Input.dispatchMouseEvent', type='mouseMoved', x=x, y=y)

    def touch(self, x: float, y: float) -> None:
        """Touches the screen for a moment."""
        self.call('Input.dispatchTouchEvent', type='touchStart', touchPoints=[{'x': x, 'y': y}])
        self.call('Input.dispatchTouchEvent', type='touchEnd', touchPoints=[])

    def screenshot(self, file: Path, whole: bool = False) -> None:
        """Writes what is seen. Args: file; whole, beyond the window too."""
        found = self.call('Page.captureScreenshot', captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(found['data']))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._profile.cleanup()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_) -> None:
        self.close()
