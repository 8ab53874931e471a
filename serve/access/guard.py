"""What every request must pass before a route sees it: the right host, and a caller who is known."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from fathom.errors import FathomError
from fathom.errors.serving import NotSignedIn
from serve.access.caller import Caller, Role
from serve.options import Options
from serve.problems import on_failure

LOCAL = Caller("local", Role.admin)
"""Whoever uses this machine, where only it can reach the server."""
PUBLIC = ("/api/v1/health", "/api/v1/ready")


class Guard:
    """ASGI middleware that sets `request.state.caller`, or refuses."""

    def __init__(self, app: ASGIApp, options: Options) -> None:
        self._app = app
        self._options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if it may come in."""
        if scope["type"] == "http":
            request = Request(scope, receive)
            try:
                scope.setdefault("state", {})["caller"] = await self._caller(request)
            except FathomError as error:
                await (await on_failure(request, error))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _caller(self, request: Request) -> Caller | None:
        if self._options.open:
            return LOCAL
        if request.url.path in PUBLIC:
            return None
        raise NotSignedIn("Sign in with a token.")
