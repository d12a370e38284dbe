"""The server: requests that it refuses, its address, and the error without NiceGUI."""

from __future__ import annotations

import asyncio
import socket
import sys

import pytest

from tests.helpers.world import run_in_process
from tpa_mmseg.errors import TPAError
from tpa_mmseg.webapp.limits import Limits
from tpa_mmseg.webapp.server import Address, BodyLimit, serve


def answer(method: str, *headers: tuple[bytes, bytes]) -> int:
    """The status of a request to an app behind a limit of 100 bytes."""
    sent = []

    async def app(scope: dict, receive, send) -> None:
        await send({'type': 'http.response.start', 'status': 200})

    async def send(message: dict) -> None:
        sent.append(message)

    scope = {'type': 'http', 'method': method, 'headers': list(headers)}
    asyncio.run(BodyLimit(app, 100)(scope, None, send))
    return sent[0]['status']


def test_larger_bodies_and_bodies_without_an_end_are_refused_unread() -> None:
    assert answer('POST', (b'content-length', b'100')) == 200
    assert answer('POST', (b'content-length', b'101')) == 413
    assert answer('PUT', (b'content-length', b'-1')) == 411
    assert answer('POST', (b'transfer-encoding', b'chunked')) == 411
    assert answer('GET') == 200


def test_only_this_machine_is_served_by_default() -> None:
    assert Address().host == '127.0.0.1'


def test_taken_port_is_one_sentence() -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TPAError, match=f'Cannot serve http://127.0.0.1:{port}'):
            Address(port=port).check()


@pytest.mark.parametrize('address', [Address('no.such.place.invalid'), Address(port=70000)], ids=str)
def test_address_that_is_none_is_one_sentence(address: Address) -> None:
    with pytest.raises(TPAError, match='Cannot serve'):
        address.check()


def test_missing_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'nicegui', None)
    with pytest.raises(TPAError, match=r"NiceGUI. Install it with: pip install 'tpa_mmseg\[webapp\]'"):
        serve(Address(), Limits())


def test_tool_ends_with_the_sentence(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    monkeypatch.setitem(sys.modules, 'nicegui', None)
    with pytest.raises(SystemExit):
        run_in_process('webapp', '--no-browser')
    assert 'error: The page needs NiceGUI' in capfd.readouterr().err
