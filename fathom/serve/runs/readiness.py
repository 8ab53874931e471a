"""Whether a server could do its work if somebody asked now."""

from __future__ import annotations

import asyncio
import os
import socket
import time

import httpx
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectException, PrefectHTTPStatusError

from fathom.errors import NotReady, StoreError
from fathom.serve.options import Options
from fathom.serve.runs.workers import living
from fathom.storage.store import ArtifactStore

KEPT_SECONDS = 2.0
"""How long an answer is given again: anybody may ask."""
PREFECT_SECONDS = 5.0


class Readiness:
    """What a balancer asks."""

    def __init__(self, store: ArtifactStore, options: Options) -> None:
        self._store = store
        self._pool = options.pool
        self._work_pool = options.work_pool
        self._asking = asyncio.Lock()
        self._known: tuple[float, list[str]] = (0.0, [])

    async def check(self) -> None:
        """Check that everything is there.

        Raises:
            NotReady: something is not.
        """
        async with self._asking:
            at, missing = self._known
            if time.monotonic() - at > KEPT_SECONDS:
                found = await asyncio.gather(self._workers(), self._writable())
                missing = [problem for problem in found if problem]
                self._known = time.monotonic(), missing
        if missing:
            raise NotReady(" ".join(missing))

    async def _workers(self) -> str:
        try:
            async with asyncio.timeout(PREFECT_SECONDS), get_client() as client:
                names = await living(client, self._work_pool)
        except (httpx.HTTPError, PrefectException, PrefectHTTPStatusError, TimeoutError) as error:
            return f"Prefect does not answer ({type(error).__name__})."
        return "" if names else f"No worker serves the pool{f' {self._pool!r}' if self._pool else ''}."

    async def _writable(self) -> str:
        path = f".serve/ready/{socket.gethostname()}-{os.getpid()}"
        try:
            await self._store.write(path, b"")
            await self._store.remove(path)
        except StoreError:
            return "The artifact store cannot be written."
        return ""
