"""A server from its start to its end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from prefect.client.orchestration import get_client
from prefect.context import AsyncClientContext

from fathom.text.counting import counted
from serve.app import create_app
from serve.options import Options
from serve.runs.desk import Desk
from serve.runs.workers import Workers, living

GRACE_SECONDS = 5
"""In which requests in progress must end; streams of events end at once."""


async def serve(options: Options, listener: socket.socket, say: Callable[[str], object]) -> None:
    """Serve until SIGTERM or Ctrl-C; a second one does not wait. `say` is told what a person should know."""
    workers = None if options.pool else Workers(options, say)
    app = create_app(options, workers.wake if workers else lambda: None)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE_SECONDS)
    # Requests inherit the context in which the server begins to listen, and so share one client of Prefect: making one
    # reads all certificates, 30 ms of processor time each.
    async with AsyncClientContext.get_or_create():
        server = _Server(config, app.state.desk, lambda: _tell_start(options, listener, say))
        keeping = asyncio.create_task(_keep(workers, server)) if workers else None
        telling = asyncio.create_task(_tell_pool(options, server, say)) if options.pool else None
        await server.serve([listener])
        for task in filter(None, (keeping, telling)):
            task.cancel()
            await asyncio.wait([task])
        if workers:
            say("Ending the workers ...")
            await workers.stop()


class _Server(uvicorn.Server):
    """Ends streams of events when it is told to stop, and is told so by signals that end nothing else."""

    def __init__(self, config: uvicorn.Config, desk: Desk, started: Callable[[], object]) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._desk = desk
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self._started()
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal, as a success: whoever sends it wants that."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        yield  # the handlers stay: the workers end after the server

    def _stop(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
        self._desk.feeds.close()


async def _keep(workers: Workers, server: _Server) -> None:
    await server.listening.wait()
    await workers.keep()


def _tell_start(options: Options, listener: socket.socket, say: Callable[[str], object]) -> None:
    host = f"[{options.host}]" if ":" in options.host else options.host
    own = f"up to {counted(options.at_once, 'run')} at once, each in a process of this machine"
    say(f"Fathom serves on http://{host}:{listener.getsockname()[1]} (Ctrl-C ends it).")
    say(f"  store    {options.artifacts}")
    say(f"  runs     {f'the workers of the work pool {options.pool!r}' if options.pool else own}")
    say(f"  sign-in  {'not needed: only this machine can reach it' if options.open else 'needed'}")


async def _tell_pool(options: Options, server: _Server, say: Callable[[str], object]) -> None:
    """Say that nobody does the research, if so."""
    await server.listening.wait()
    async with get_client() as client:
        if not await living(client, options.pool):
            say(f"No worker serves the pool: runs wait until `fathom worker --pool {options.pool}` is started.")
