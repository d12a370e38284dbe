"""The server of the page: on this machine only by default, with a limit on the size of requests."""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass

from ..errors import TPAError
from .limits import Limits

_LOCAL = ('127.0.0.1', 'localhost')
# What a form adds to the file in it.
_ENVELOPE = 2**16


@dataclass(frozen=True)
class Address:
    """Address of the page."""

    host: str = '127.0.0.1'
    port: int = 8080

    def __str__(self) -> str:
        return f'http://{self.host}:{self.port}'

    def check(self) -> None:
        """Raise TPAError if the address cannot be used."""
        try:
            # As for the server itself, a port that was used a moment ago is free.
            with socket.create_server((self.host, self.port)):
                pass
        except (OSError, OverflowError) as error:
            reason = getattr(error, 'strerror', None) or error
            raise TPAError(f'Cannot serve {self} ({reason}). Choose another --port or --address.') from error


class BodyLimit:
    """ASGI middleware that refuses requests with a larger body before any of it is read.

    Args:
        app: The application behind it.
        most: Most bytes of a body.
    """

    def __init__(self, app, most: int) -> None:
        self.app, self.most = app, most

    async def __call__(self, scope: dict, receive, send) -> None:
        if scope['type'] == 'http' and scope['method'] not in ('GET', 'HEAD', 'OPTIONS'):
            length = dict(scope['headers']).get(b'content-length', b'')
            if not length.isdigit() or int(length) > self.most:
                await send({'type': 'http.response.start', 'status': 413 if length.isdigit() else 411, 'headers': []})
                await send({'type': 'http.response.body', 'body': b''})
                return
        await self.app(scope, receive, send)


def serve(address: Address, limits: Limits, device: str | None = None, show: bool = True) -> None:
    """Serve the page until it is interrupted.

    Args:
        address: Host and port.
        limits: Limits of uploads.
        device: Torch device of the models.
        show: Whether to open a browser.
    """
    try:
        from nicegui import app, ui
        from starlette.middleware.trustedhost import TrustedHostMiddleware
    except ImportError as error:
        raise TPAError("The page needs NiceGUI. Install it with: pip install 'tpa_mmseg[webapp]'") from error
    from .page import Page

    address.check()
    app.add_middleware(BodyLimit, most=limits.bytes + _ENVELOPE)
    if address.host in _LOCAL:
        # A site elsewhere whose name leads to this machine does not get the page.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(_LOCAL))
    else:
        print(f'Everyone who reaches {address} can use this page.', file=sys.stderr)
    ui.page('/', title='TPA')(lambda: Page(limits, device).build())
    print(f'The page is at {address} (Ctrl+C ends it).', flush=True)
    ui.run(
        host=address.host,
        port=address.port,
        show=show,
        reload=False,
        dark=None,
        favicon='🧩',
        show_welcome_message=False,
    )
