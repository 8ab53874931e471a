"""Prefect's global concurrency limits as limits on requests to providers, over all workers."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError, concurrency, rate_limit
from prefect.exceptions import ObjectNotFound
from prefect.logging import get_logger

from fathom.models import Model
from fathom.tasks.clients import prefect_client

PREFIX = "fathom-"
PER_MINUTE, AT_ONCE = "-per-minute", "-at-once"
LEASE_SECONDS = 60.0  # seconds after which the place of a killed process's request is free
PAUSE_SECONDS = 1.0
MOST = 200  # limits that one request returns


class ProviderLimit(Model):
    """Limits on requests to one provider by all runs of a Prefect server; None is no limit."""

    provider: str
    per_minute: int | None = None
    at_once: int | None = None


async def read_limits() -> list[ProviderLimit]:
    """Return the limits that the server keeps, by provider."""
    found: dict[str, dict[str, int]] = {}
    async with prefect_client() as client:
        for limit in await client.read_global_concurrency_limits(limit=MOST):
            name = limit.name.removeprefix(PREFIX)
            if name == limit.name or not limit.active:
                continue
            if name.endswith(PER_MINUTE):
                per_minute = round(60 * limit.slot_decay_per_second)
                found.setdefault(name.removesuffix(PER_MINUTE), {})["per_minute"] = per_minute
            elif name.endswith(AT_ONCE):
                found.setdefault(name.removesuffix(AT_ONCE), {})["at_once"] = limit.limit
    return [ProviderLimit(provider=provider, **limits) for provider, limits in sorted(found.items())]


async def set_limit(wanted: ProviderLimit) -> None:
    """Create or change the limits of a provider; limits that are None stay as they are.

    A rate is a bucket of one second's requests that refills evenly, so that a minute never has more than the limit plus
    one second's requests.
    """
    async with prefect_client() as client:
        if wanted.per_minute is not None:
            decay = wanted.per_minute / 60
            name = f"{PREFIX}{wanted.provider}{PER_MINUTE}"
            await client.upsert_global_concurrency_limit_by_name(name, max(1, math.ceil(decay)), decay)
        if wanted.at_once is not None:
            name = f"{PREFIX}{wanted.provider}{AT_ONCE}"
            await client.upsert_global_concurrency_limit_by_name(name, wanted.at_once)


async def remove_limits(provider: str) -> bool:
    """Remove the limits of a provider; False if it had none."""
    removed = False
    async with prefect_client() as client:
        for kind in (PER_MINUTE, AT_ONCE):
            try:
                await client.delete_global_concurrency_limit_by_name(f"{PREFIX}{provider}{kind}")
                removed = True
            except ObjectNotFound:
                continue
    return removed


class SharedTurns:
    """Makes requests wait for the limits that the server keeps: a `Turns` of `fathom.network`.

    While the server does not answer, requests wait, so that a shared limit is never exceeded.
    """

    def __init__(self, limits: Sequence[ProviderLimit]) -> None:
        self._limits = {limit.provider: limit for limit in limits}

    @asynccontextmanager
    async def __call__(self, provider: str) -> AsyncIterator[None]:
        """Wait for the turn of one request, and hold its place while it is made."""
        limit = self._limits.get(provider)
        held = AsyncExitStack()
        if limit and limit.at_once is not None:
            place = f"{PREFIX}{provider}{AT_ONCE}"
            await _patiently(lambda: held.enter_async_context(concurrency(place, lease_duration=LEASE_SECONDS)))
        try:
            if limit and limit.per_minute is not None:
                await _patiently(lambda: rate_limit(f"{PREFIX}{provider}{PER_MINUTE}"))
            yield
        finally:
            try:
                await held.aclose()
            except httpx.HTTPError as error:  # the answer is worth more; the place is free when its lease ends
                get_logger("fathom").warning("A place of the limit on %s was not given back: %r", provider, error)


async def _patiently(ask: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await ask()
        except ConcurrencySlotAcquisitionError:  # the server does not answer
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            return
