"""The server of the page: on this machine only by default."""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
import webbrowser

from ..errors import TPAError
from .limits import Limits


def serve(
    host: str = '127.0.0.1',
    port: int = 8080,
    limits: Limits | None = None,
    device: str | None = None,
    show: bool = False,
    token: str | None = None,
) -> None:
    """Serve the page until it is interrupted.

    Args:
        host, port: Address to listen on. By default only this machine can reach it.
        limits: Limits of visitors.
        device: Torch device of the networks.
        show: Whether to open a browser.
        token: Secret that visitors need, empty for none. Default: none on this machine, elsewhere a random one.
    """
    # Gradio reads it when it is imported.
    os.environ.update(GRADIO_ANALYTICS_ENABLED='False', HF_HUB_DISABLE_TELEMETRY='1')
    try:
        import uvicorn

        from .guard import LOCAL, Guard
        from .page import mount_page
    except ImportError as error:
        raise TPAError("The page needs Gradio. Install it with: pip install 'tpa_mmseg[webapp]'") from error
    check_address(host, port)
    limits, local = limits or Limits(), host in LOCAL
    token = secrets.token_urlsafe(24) if token is None and not local else token
    # What visitors upload is for nobody else on this machine.
    with tempfile.TemporaryDirectory(prefix='tpa_page_') as folder:
        os.environ['GRADIO_TEMP_DIR'] = folder
        app = mount_page(Guard(limits, token or '', local), device)
        link = f'http://{host}:{port}/' + (f'?token={token}' if token else '')
        print(f'The page is at {link} (Ctrl+C ends it).', flush=True)
        if show:
            webbrowser.open(link)
        uvicorn.run(app, host=host, port=port, log_level='warning')


def check_address(host: str, port: int) -> None:
    """Raise TPAError if an address cannot be used."""
    try:
        # As for the server itself, a port that was used a moment ago is free.
        socket.create_server((host, port)).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, 'strerror', None) or error
        raise TPAError(f'Cannot serve http://{host}:{port} ({reason}). Choose another --port or --address.') from error
