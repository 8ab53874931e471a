"""Fathom as an MCP server that speaks over the input and output of its process, to one client on this machine."""

from __future__ import annotations

import asyncio

from prefect.context import AsyncClientContext

from flows.worker import Worker
from serve.access.guard import LOCAL
from serve.mcp.server import create_server
from serve.options import Options
from serve.runs.desk import Desk


async def serve(options: Options) -> None:
    """Serve until the input ends. Runs that are then under way are left to other workers of the pool."""
    desk = Desk(options)
    worker = None if options.pool else Worker(options.work_pool, options.at_once, drain_seconds=0)
    async with AsyncClientContext.get_or_create():
        await desk.open()
        working = asyncio.create_task(worker.serve()) if worker else None
        try:
            await create_server(desk, lambda _: LOCAL).run_stdio_async()
        finally:
            if worker and working:
                worker.stop()
                await asyncio.wait({working})
