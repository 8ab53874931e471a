"""The application, its parts put together, and a server from its start to its end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.metadata import version

import httpx
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber, guard_logs
from fathom.errors import FathomError
from fathom.flows.execution.deploying import unattended
from fathom.interfaces import problems
from fathom.interfaces.api import batches, corpora, document, reports, runs, sessions, status, watches
from fathom.interfaces.chat import completions, responses, wire
from fathom.interfaces.connections import ClientConnection, Strangers, raise_file_limit
from fathom.interfaces.gate import PROGRAMS, Compression, Gate, Guard
from fathom.interfaces.mcp.transports import Mounted
from fathom.interfaces.page import PAGE
from fathom.interfaces.page import rendering as page
from fathom.interfaces.starting import Starting
from fathom.service.options import Options
from fathom.service.outages import asking_briefly
from fathom.service.runs import RunService
from fathom.service.workers import Workers

GRACE_SECONDS = 5
"""In which requests in progress must end; streams of events end at once."""


async def serve(options: Options, listener: socket.socket, starting: Starting, say: Callable[[str], object]) -> None:
    """Serve until SIGTERM or Ctrl-C; a second one does not wait. `say` is told what a person should know."""
    guard_logs(Scrubber(Environment.read().secrets))
    workers = None if options.pool else Workers(options, say)
    app = create_app(options, workers.wake if workers else lambda: None)
    config = config_of(app, options)
    async with asking_briefly():  # requests inherit the context in which the server begins to listen
        server = _Server(config, starting, lambda: _tell_start(options, listener, say))
        server.on_stop = [app.state.service.feeds.close, *([workers.terminate] if workers else [])]
        keeping = asyncio.create_task(_keep(workers, server)) if workers else None
        telling = asyncio.create_task(_tell_pool(options, server, say)) if options.pool else None
        await server.serve([listener])
        for task in filter(None, (keeping, telling)):
            task.cancel()
            await asyncio.wait([task])
        if workers:
            await workers.ended()


def config_of(app: FastAPI, options: Options) -> uvicorn.Config:
    """Return how uvicorn serves an application; this process may then open as many files as it is allowed."""
    files = raise_file_limit()
    return uvicorn.Config(
        app,
        # Half of the files are for everything else, among it what is accepted before a connection is counted: asyncio
        # accepts as many at once as the backlog has.
        http=partial(ClientConnection, strangers=Strangers(options.connections, files // 2)),  # type: ignore[arg-type]  # any maker of a protocol will do
        backlog=min(2_048, files // 4),
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # `fathom.interfaces.gate` decides which proxy is believed
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


class _Server(uvicorn.Server):
    """Does what `on_stop` names as soon as a signal tells it to stop; then requests in progress have time to end."""

    def __init__(self, config: uvicorn.Config, starting: Starting, started: Callable[[], object]) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self.on_stop: list[Callable[[], object]] = []
        self._starting = starting
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and take the connections that waited for it."""
        await super().startup(sockets)
        for connection in self._starting.stop():
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        self._started()
        self.listening.set()

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; the application ends in order also after a second signal, instead of being cancelled."""
        await super().shutdown(sockets)
        if self.force_exit and not self.lifespan.shutdown_event.is_set():
            await self.lifespan.shutdown()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal, as a success: whoever sends it wants that."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        yield  # the handlers stay: the workers may end after the server

    def _stop(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
        for stop in self.on_stop:
            stop()


async def _keep(workers: Workers, server: _Server) -> None:
    await server.listening.wait()
    await workers.keep()


def _tell_start(options: Options, listener: socket.socket, say: Callable[[str], object]) -> None:
    host = f"[{options.host}]" if ":" in options.host else options.host
    own = f"up to {options.at_once} at once, each in a process of this machine"
    say(f"Fathom serves on http://{host}:{listener.getsockname()[1]} (Ctrl-C ends it).")
    say(f"  store    {options.artifacts}")
    if options.docs:
        say(f"  docs     {', '.join(options.docs)}")
    say(f"  runs     {f'the workers of the work pool {options.pool!r}' if options.pool else own}")
    say(f"  sign-in  {'not needed: only this machine can reach it' if options.open else 'needed'}")


async def _tell_pool(options: Options, server: _Server, say: Callable[[str], object]) -> None:
    """Say that nobody does the research, if so."""
    await server.listening.wait()
    if missing := await unattended(options.pool):
        say(f"{missing} Meanwhile, runs wait.")


_LEVEL = 6  # of gzip: 9 takes twice the time and saves a hundredth


def create_app(options: Options, wake: Callable[[], object] = lambda: None) -> FastAPI:
    """Return the application of a server. It needs a Prefect API: call `fathom.flows.server.ensure_api` first.

    `wake` is called when a run can begin.
    """
    service, gate = RunService(options, wake), Gate(options)
    mcp = Mounted(service)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await service.submissions.deploy()
        async with mcp.lifespan():
            yield
        await service.feeds.aclose()

    app = FastAPI(
        title="Fathom",
        version=version("fathom-research"),
        summary="Turns a question into a cited report that can be checked.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # it loads its script from elsewhere
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
        lifespan=lifespan,
    )
    app.state.service, app.state.gate = service, gate
    for kind in (FathomError, RequestValidationError, HTTPException, httpx.HTTPError):
        app.add_exception_handler(kind, on_error)
    data = (
        *(runs.router, runs.searching, reports.router, watches.router, batches.router, status.router),
        *(sessions.router, runs.sharing, corpora.router, completions.router, responses.router),
    )
    for router in (*data, *PAGE):
        app.include_router(router)
    app.router.routes += mcp.routes()
    document.describe(app)
    app.add_middleware(Compression, compresslevel=_LEVEL)
    app.add_middleware(Guard, gate=gate, on_error=on_error)
    return app


async def on_error(request: Request, error: Exception) -> Response:
    """Answer with an error."""
    problem, headers = problems.told(request, error)
    if request.url.path.startswith(wire.PREFIX):  # whoever speaks its protocol expects its errors
        return wire.answer(problem, headers, error)
    if not request.url.path.startswith(PROGRAMS) and "text/html" in request.headers.get("accept", ""):
        return page.answer(request, problem, headers)
    return problems.answer(problem, headers)
