"""The MCP server over the input and output of a process, and over streamable HTTP, for clients that passed the guard.

It is made when it is first needed: the package takes half a second to load, and may not be installed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from fathom.client.shapes import Problem
from fathom.interfaces import problems
from fathom.interfaces.gate import LOCAL
from fathom.service.caller import Caller
from fathom.service.options import Options
from fathom.service.outages import asking_briefly, asking_patiently
from fathom.service.runs import RunService
from fathom.service.workers import Workers

PATH = "/mcp"


class Mounted:
    """The ASGI application below the path."""

    def __init__(self, service: RunService) -> None:
        self._service = service
        self._made: asyncio.Task[None] | None = None
        self._handler: asyncio.Future[Any] | None = None
        self._ending: asyncio.Event | None = None

    def routes(self) -> list[Route]:
        """Return the routes: clients are told either address."""
        return [Route(path, self, include_in_schema=False) for path in (PATH, f"{PATH}/")]

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """End what runs for it when the server ends."""
        self._ending = asyncio.Event()
        try:
            yield
        finally:
            self._ending.set()
            if self._made:
                await asyncio.wait({self._made})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if self._made is None:
            self._handler = asyncio.get_running_loop().create_future()
            self._made = asyncio.create_task(self._serve(self._handler))
        assert self._handler
        await asyncio.wait({self._handler, self._made}, return_when=asyncio.FIRST_COMPLETED)
        if not self._handler.done():
            self._made.result()  # raises what kept the server from being made
        handler = self._handler.result()
        if handler is None:
            status = HTTPStatus.NOT_IMPLEMENTED
            hint = "on the server, fathom doctor shows how to install it"
            problem = Problem(title=status.phrase, status=status, detail="The extra `mcp` is missing.", next_step=hint)
            await problems.answer(problem)(scope, receive, send)
            return
        await handler(scope, receive, send)

    async def _serve(self, handler: asyncio.Future[Any]) -> None:
        """Have the server's tasks run in a task of their own, from the first request to the end of the application."""
        try:
            server = await asyncio.to_thread(self._create)
        except ModuleNotFoundError as missing:
            if missing.name != "mcp":
                raise
            handler.set_result(None)
            return
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the guard checks hosts and origins
        server.streamable_http_app(stateless_http=True, transport_security=checked)
        manager: StreamableHTTPSessionManager = server.session_manager
        assert self._ending
        async with manager.run():
            handler.set_result(manager.handle_request)
            await self._ending.wait()

    def _create(self) -> Any:
        from fathom.interfaces.mcp.server import create_server

        return create_server(self._service, _caller_of)


def _caller_of(context: Any) -> Caller:
    """Return who sent the request: the guard knows."""
    caller = context.request_context.request.state.caller
    assert isinstance(caller, Caller)
    return caller


async def serve_process(options: Options) -> None:
    """Serve one client until the input ends. Runs under way go on: their workers end once nothing is left to do."""
    from fathom.interfaces.mcp.server import create_server

    workers = None if options.pool else Workers(options, _say)
    service = RunService(options, workers.wake if workers else lambda: None)
    async with asking_briefly():
        await service.submissions.deploy()
        keeping = asyncio.create_task(workers.keep()) if workers else None
        try:
            with asking_patiently():
                await create_server(service, lambda _: LOCAL).run_stdio_async()
        finally:
            if keeping:
                keeping.cancel()
                await asyncio.wait({keeping})


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")  # the protocol has the other stream
