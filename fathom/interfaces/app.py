"""The application: its parts, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version

import httpx
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fathom.errors import FathomError
from fathom.interfaces import problems
from fathom.interfaces.api import batches, corpora, document, library, reports, runs, sessions, sharing, status, watches
from fathom.interfaces.chat import completions, responses, wire
from fathom.interfaces.gate import PROGRAMS, Compression, Gate, Guard
from fathom.interfaces.mcp.transports import Mounted
from fathom.interfaces.page import PAGE
from fathom.interfaces.page import rendering as page
from fathom.service.options import Options
from fathom.service.runs import RunService

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
    data = (runs, library, reports, watches, batches, status, sessions, sharing, corpora, completions, responses)
    for part in (*data, *PAGE):
        app.include_router(part.router)
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
