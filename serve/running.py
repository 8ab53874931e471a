"""A server from its start to its end."""

from __future__ import annotations

import uvicorn
from prefect.context import AsyncClientContext

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber, guard_logs
from serve.app import create_app
from serve.options import Options


async def serve(options: Options) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    guard_logs(Scrubber(Environment.read().secrets))
    config = uvicorn.Config(
        create_app(options),
        host=options.host,
        port=options.port,
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # `serve.access` decides which proxy is believed
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    # Requests inherit the context in which the server begins to listen, and so share one client of Prefect: making one
    # reads all certificates, 30 ms of processor time each.
    async with AsyncClientContext.get_or_create():
        await uvicorn.Server(config).serve()
