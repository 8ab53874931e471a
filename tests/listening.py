"""HTTP servers of the tests: in the test's own event loop, or in a thread with one of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TypeVar

from aiohttp import web
from anyio.from_thread import start_blocking_portal

__all__ = ["Handler", "app_of", "in_front", "in_thread", "listening"]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_Entered = TypeVar("_Entered")


def app_of(handle: Handler) -> web.Application:
    """Return what answers every request by one handler."""
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_route("*", "/{path:.*}", handle)
    return app


@asynccontextmanager
async def listening(app: web.Application, port: int = 0) -> AsyncIterator[str]:
    """Serve requests, and yield the address.

    A request whose client went away is cancelled. At the end every connection is closed, also where what was sent was
    not read: it would warn of an open socket whenever it is collected, in another test.
    """
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        left = [connection.transport for connection in runner.server.connections] if runner.server else []
        await runner.cleanup()
        for transport in left:
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
        await asyncio.sleep(0)


@contextmanager
def in_thread(server: AbstractAsyncContextManager[_Entered], name: str) -> Iterator[_Entered]:
    """Enter a server in a thread with an event loop of its own, for sync and async tests alike."""
    with start_blocking_portal(name=name) as portal, portal.wrap_async_context_manager(server) as entered:
        yield entered


@contextmanager
def in_front(handle: Handler, name: str) -> Iterator[str]:
    """Serve every request by a handler in a thread, and yield the address."""
    with in_thread(listening(app_of(handle)), name) as address:
        yield address
