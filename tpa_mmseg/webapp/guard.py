"""Answers the requests that must not reach the page. Needs Starlette, which comes with Gradio."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from .limits import Limits

#: The names of this machine that only it understands so.
LOCAL = ('127.0.0.1', 'localhost')
_COOKIE = 'tpa_token'
# Nothing from the web, and no address with a token to other sites. Gradio needs scripts inside its page.
_HEADERS = {
    'content-security-policy': "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:",
    'referrer-policy': 'no-referrer',
}
# What a form adds to the files in it.
_ENVELOPE = 2**16


@dataclass(frozen=True)
class Guard:
    """A function for Starlette's middleware: names of the server, a token, and limits on requests.

    Args:
        limits: Limits of size and time.
        token: Secret that a visitor shows once as ``?token=``, then as a cookie; empty to let everyone in.
        local: Serve only under names of this machine: a site elsewhere can give it one of its own.
    """

    limits: Limits
    token: str = ''
    local: bool = True

    async def __call__(self, request: Request, pass_on: Callable) -> Response:
        seconds = self.limits.upload_seconds if request.url.path == '/gradio_api/upload' else None
        answer = self._refusal(request) or await asyncio.wait_for(pass_on(request), seconds)
        answer.headers.update(_HEADERS)
        return answer

    def _refusal(self, request: Request) -> Response | None:
        host, origin = request.headers.get('host'), request.headers.get('origin', '').partition('://')[2]
        if self.local and (request.url.hostname not in LOCAL or origin not in ('', host)):
            return Response(status_code=400)
        if self.token and self._is_token(request.query_params.get('token', '')):
            found = RedirectResponse('/', status_code=303)
            found.set_cookie(_COOKIE, self.token, httponly=True, samesite='strict')
            return found
        if self.token and not self._is_token(request.cookies.get(_COOKIE, '')):
            return PlainTextResponse('Open the address with the token that the server has printed.', status_code=401)
        length = request.headers.get('content-length', '')
        if request.method not in ('GET', 'HEAD', 'OPTIONS') and not length.isdigit():
            return Response(status_code=411)
        most = self.limits.images * self.limits.megabytes * 2**20 + _ENVELOPE
        return Response(status_code=413) if length.isdigit() and int(length) > most else None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())
