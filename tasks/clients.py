"""Clients of the Prefect API that share what takes longest to make: the certificates that they trust."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import certifi
from prefect.client.orchestration import PrefectClient, get_client
from prefect.context import AsyncClientContext
from prefect.settings import get_current_settings

_kept: dict[asyncio.AbstractEventLoop, PrefectClient] = {}


@asynccontextmanager
async def one_client() -> AsyncIterator[None]:
    """Keep a client for this event loop inside the block, in a process that asks Prefect again and again."""
    loop = asyncio.get_running_loop()
    async with new_client() as client:
        _kept[loop] = client
        try:
            yield
        finally:
            del _kept[loop]


def prefect_client() -> PrefectClient:
    """Return the client that is kept for this event loop, by a run or by `one_client`, else a new one."""
    loop, context = asyncio.get_running_loop(), AsyncClientContext.get()
    if context and context.client.loop is loop:
        return get_client()
    return _kept.get(loop) or new_client()


def new_client(seconds: float | None = None) -> PrefectClient:
    """Return a new client, which waits so many seconds for an answer, by default as long as Prefect's settings say.

    By itself, each client of Prefect reads the certificates again, which takes 15 ms of processor time.
    """
    api = get_current_settings().api
    given: dict[str, Any] = {} if seconds is None else {"timeout": seconds}
    if not api.tls_insecure_skip_verify:
        given["verify"] = _trusting(api.ssl_cert_file or certifi.where())
    return get_client(httpx_settings=given)


@cache
def _trusting(file: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=file)
