"""The application: its parts, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from fathom.errors import FathomError
from serve import problems
from serve.access.guard import Guard
from serve.api import health, runs
from serve.options import Options
from serve.runs.desk import Desk


def create_app(options: Options, wake: Callable[[], object] = lambda: None) -> FastAPI:
    """Return the application of a server. It needs a Prefect API: call `flows.server.ensure_api` first.

    `wake` is called when a run can begin.
    """
    desk = Desk(options, wake)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await desk.open()
        yield
        await desk.feeds.aclose()

    app = FastAPI(
        title="Fathom",
        version=version("fathom-research"),
        summary="Turns a question into a cited report that can be checked.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # it loads its script from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.desk = desk
    app.add_exception_handler(FathomError, problems.on_failure)
    app.add_exception_handler(RequestValidationError, problems.on_invalid)
    app.add_exception_handler(HTTPException, problems.on_http)
    for part in (health, runs):
        app.include_router(part.router)
    app.add_middleware(Guard, options=options)
    return app
