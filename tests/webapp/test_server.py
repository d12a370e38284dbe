"""The door of the page: requests that are refused, the token, the address, and the error without Gradio."""

from __future__ import annotations

import socket
import sys

import pytest

from tests.helpers.world import run_in_process
from tpa_mmseg.errors import TPAError
from tpa_mmseg.webapp import serve
from tpa_mmseg.webapp.limits import Limits
from tpa_mmseg.webapp.server import check_address

starlette = pytest.importorskip('starlette', reason="no Gradio: pip install 'tpa_mmseg[webapp]'")
LIMITS = Limits(images=1, megabytes=1, upload_seconds=0.2)


@pytest.fixture
def ask():
    """A client of a tiny application behind a guard; its requests carry a name of this machine."""
    from fastapi import FastAPI
    from starlette.responses import PlainTextResponse
    from starlette.testclient import TestClient

    from tpa_mmseg.webapp.guard import Guard

    async def hello(request) -> PlainTextResponse:
        await request.body()
        return PlainTextResponse('hello')

    def start(address: str = 'http://127.0.0.1:80', **options) -> TestClient:
        app = FastAPI()
        app.add_route('/{path:path}', hello, methods=['GET', 'POST', 'PUT'])
        app.middleware('http')(Guard(LIMITS, **options))
        return TestClient(app, address, follow_redirects=False)

    return start


def test_larger_bodies_and_bodies_without_an_end_are_refused(ask) -> None:
    client = ask()
    assert client.post('/', content=b'x' * 2**20).status_code == 200
    assert client.post('/', content=b'x' * (2**20 + 2**17)).status_code == 413
    assert client.put('/', content=iter([b'x'])).status_code == 411
    assert client.get('/').status_code == 200


def test_upload_that_takes_too_long_ends(ask) -> None:
    import asyncio

    from tpa_mmseg.webapp.guard import Guard

    async def endless(request) -> None:
        await asyncio.sleep(60)

    scope = {'type': 'http', 'method': 'POST', 'path': '/gradio_api/upload', 'query_string': b'', 'server': None}
    headers = [(b'host', b'localhost'), (b'content-length', b'1')]
    request = starlette.requests.Request({**scope, 'headers': headers, 'scheme': 'http'})
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(Guard(LIMITS)(request, endless))


def test_other_names_for_this_machine_and_other_sites_do_not_get_the_page(ask) -> None:
    assert ask('http://localhost:80').get('/').status_code == 200
    assert ask('http://elsewhere.example').get('/').status_code == 400
    assert ask().post('/', content=b'x', headers={'origin': 'http://elsewhere.example'}).status_code == 400
    assert ask('http://elsewhere.example', local=False).get('/').status_code == 200


def test_page_may_load_nothing_from_the_web(ask) -> None:
    headers = ask().get('/').headers
    assert headers['content-security-policy'].startswith("default-src 'self'")
    assert headers['referrer-policy'] == 'no-referrer'


def test_token_is_shown_once_and_then_a_cookie(ask) -> None:
    client = ask(token='secret')
    for path in ('/', '/gradio_api/config', '/?token=', '/?token=Secret', '/?token=secre'):
        assert client.get(path).status_code == 401
    assert client.post('/gradio_api/upload', content=b'x').status_code == 401
    client.cookies.set('tpa_token', 'guess')
    assert client.get('/').status_code == 401
    client.cookies.clear()
    shown = client.get('/?token=secret')
    assert shown.status_code == 303 and shown.headers['location'] == '/'
    assert {'HttpOnly', 'SameSite=strict'} <= set(shown.headers['set-cookie'].split('; '))
    assert client.get('/').text == 'hello'


@pytest.mark.parametrize(
    ('options', 'protected'),
    [
        ([], False),
        (['--token'], True),
        (['--address', '0.0.0.0'], True),
        (['--address', '0.0.0.0', '--no-token'], False),
    ],
)
def test_token_is_on_when_others_can_reach_the_page(
    options: list[str], protected: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    served = []
    monkeypatch.setattr('uvicorn.run', lambda app, **address: served.append(address))
    monkeypatch.setattr('tpa_mmseg.webapp.page.mount_page', lambda guard, device: served.append(guard))
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    run_in_process('webapp', '--no-browser', '--port', port, *options)
    guard, address = served
    assert bool(guard.token) is protected and len(guard.token) in (0, 32)
    assert guard.local is (address['host'] == '127.0.0.1')
    assert (f'?token={guard.token}' in capfd.readouterr().out) is protected


def test_taken_port_is_one_sentence() -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TPAError, match=f'Cannot serve http://127.0.0.1:{port}'):
            check_address('127.0.0.1', port)


@pytest.mark.parametrize(('host', 'port'), [('no.such.place.invalid', 8080), ('127.0.0.1', 70000)])
def test_address_that_is_none_is_one_sentence(host: str, port: int) -> None:
    with pytest.raises(TPAError, match='Cannot serve'):
        check_address(host, port)


def test_missing_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ('tpa_mmseg.webapp.page', 'tpa_mmseg.webapp.guard'):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, 'gradio', None)
    with pytest.raises(TPAError, match=r"needs Gradio. Install it with: pip install 'tpa_mmseg\[webapp\]'"):
        serve()


def test_tool_ends_with_the_sentence(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    monkeypatch.delitem(sys.modules, 'tpa_mmseg.webapp.page', raising=False)
    monkeypatch.setitem(sys.modules, 'gradio', None)
    with pytest.raises(SystemExit):
        run_in_process('webapp', '--no-browser')
    assert 'error: The page needs Gradio' in capfd.readouterr().err
