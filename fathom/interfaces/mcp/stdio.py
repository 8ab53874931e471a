"""Fathom as an MCP server that speaks over the input and output of its process, to one client on this machine."""

from __future__ import annotations

import asyncio
import sys

from fathom.interfaces.gate import LOCAL
from fathom.interfaces.mcp.server import create_server
from fathom.service.options import Options
from fathom.service.outages import asking_briefly
from fathom.service.runs import Desk
from fathom.service.workers import Workers


async def serve(options: Options) -> None:
    """Serve until the input ends. Runs that are then under way go on: their workers end once nothing is left to do."""
    workers = None if options.pool else Workers(options, _say)
    desk = Desk(options, workers.wake if workers else lambda: None)
    async with asking_briefly():
        await desk.open()
        keeping = asyncio.create_task(workers.keep()) if workers else None
        try:
            await create_server(desk, lambda _: LOCAL).run_stdio_async()
        finally:
            if keeping:
                keeping.cancel()
                await asyncio.wait({keeping})


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")  # the protocol has the other stream
