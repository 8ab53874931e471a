"""Clients of the Prefect API that share what takes longest to make: the certificates that they trust."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from typing import Any

from prefect.client.orchestration import PrefectClient, get_client
from prefect.context import AsyncClientContext
from prefect.settings import get_current_settings

from fathom.network import tls


def prefect_client() -> PrefectClient:
    """Return the client that is kept for this event loop, if there is one, else a new one."""
    kept = AsyncClientContext.get()
    return get_client() if kept and kept.client.loop is asyncio.get_running_loop() else new_client()


def new_client(seconds: float | None = None) -> PrefectClient:
    """Return a new client, which waits so many seconds for an answer, by default as long as Prefect's settings say.

    By itself, each client of Prefect reads the certificates again, which takes 15 ms of processor time.
    """
    api = get_current_settings().api
    given: dict[str, Any] = {} if seconds is None else {"timeout": seconds}
    if not api.tls_insecure_skip_verify:
        given["verify"] = _trusting(api.ssl_cert_file)
    return get_client(httpx_settings=given)


@cache
def _trusting(file: str | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=file) if file else tls()
