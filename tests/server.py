"""A Fathom server for tests: the application over real HTTP and a worker for its runs, in threads of this process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path

import uvicorn

from fathom.flows.execution.worker import Worker
from fathom.flows.execution.worker import serving as worker_serving
from fathom.interfaces.server import config_of, create_app
from fathom.service.options import Options, listen
from fathom.service.outages import asking_briefly
from tests.conftest import quiet_port

__all__ = ["Served", "served_with", "without_worker"]


@dataclass(frozen=True)
class Served:
    """A server that answers at `url`; its runs are stored in `root`."""

    url: str
    root: Path
    options: Options


@contextmanager
def served_with(options: Options, *, limit: int = 4) -> Iterator[Served]:
    """Serve while the block runs; at most `limit` runs at once, with 0 none. It needs `prefect_server`.

    The server has the settings of Prefect that hold where it is started.
    """
    app = create_app(options)
    listener = listen(replace(options, port=options.port or quiet_port()))
    server = uvicorn.Server(config_of(app, options))

    async def run() -> None:
        async with asking_briefly():
            await server.serve([listener])

    thread = threading.Thread(target=copy_context().run, args=(lambda: asyncio.run(run()),), name="served")
    thread.start()
    try:
        deadline = time.monotonic() + 180
        while not server.started:
            assert thread.is_alive() and time.monotonic() < deadline, "the server did not start"
            time.sleep(0.02)
        with ExitStack() as beside:
            if limit:
                beside.enter_context(worker_serving(Worker(options.work_pool, limit)))
            yield Served(f"http://{options.host}:{listener.getsockname()[1]}", Path(options.artifacts), options)
    finally:
        app.state.service.feeds.close()
        server.should_exit = True
        thread.join(30)
        listener.close()


@contextmanager
def without_worker(served: Served) -> Iterator[Served]:
    """Serve the same store beside a server: what is asked of it stays queued, as nobody serves its pool."""
    with served_with(replace(served.options, port=quiet_port(), pool="nobody"), limit=0) as idle:
        yield idle
