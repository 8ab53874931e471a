"""Prefect as requests use it: whoever waits for an answer is told soon that Prefect does not give one.

Workers and runs try again for minutes (`fathom.flows.server.be_patient`), which is right for work and wrong for a page.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from http import HTTPStatus

import httpx
from prefect.context import AsyncClientContext
from prefect.settings import (
    PREFECT_API_REQUEST_TIMEOUT,
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_SERVER_API_MAX_PARAMETER_SIZE,
    temporary_settings,
)

from fathom.config.given import shortened
from fathom.errors import FathomError, NotReady, TooLarge
from fathom.tasks.clients import prefect_client

_logger = logging.getLogger("fathom")
_TOO_LARGE = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
_TRIES_AGAIN = 1  # after 2 seconds: a connection that was kept may just have been closed
_TRIES_A_CHANGE_AGAIN = 3  # after 2, 4 and 8 seconds
_TRIES_A_START_AGAIN = 10  # for minutes: nobody waits yet, and a server that gave up would have to be started again
_LONGEST_SECONDS = 10.0
RETRY_SECONDS = 4.0
"""After which it is worth asking again."""


@asynccontextmanager
async def asking_briefly() -> AsyncGenerator[None, None]:
    """Share one client of Prefect that gives up soon with all that begins in the block."""
    with temporary_settings(updates={PREFECT_API_REQUEST_TIMEOUT: _LONGEST_SECONDS}), starting():
        async with AsyncClientContext.get_or_create():
            with _trying_again(_TRIES_AGAIN):
                yield


def asking_patiently() -> AbstractContextManager[object]:
    """Try again whatever a request for a change needs: Prefect refuses now and then while its database is locked.

    The reads before and after the change as well: whoever is told that a new run could not be shown asks twice.
    """
    return _trying_again(_TRIES_A_CHANGE_AGAIN)


def starting() -> AbstractContextManager[object]:
    """Try again for minutes what a server needs before it can answer anybody."""
    return _trying_again(_TRIES_A_START_AGAIN)


async def prefect_is_gone() -> bool:
    """Whether nothing listens at Prefect's address; a slow answer is not the same."""
    with _trying_again(0), suppress(httpx.HTTPError):
        async with prefect_client() as client:
            return isinstance(await client.api_healthcheck(), httpx.ConnectError)
    return False


def _trying_again(times: int) -> AbstractContextManager[object]:
    return temporary_settings(updates={PREFECT_CLIENT_MAX_RETRIES: times})


def outage(error: httpx.HTTPError) -> FathomError:
    """Return what is told of a failed request to Prefect.

    Where Prefect has answered and found a fault in what was asked, its log says which. Prefect repeats in its answer
    what it was sent; of that, no more than a line is kept.
    """
    if isinstance(error, httpx.HTTPStatusError):
        status = error.response.status_code
        asks_to_wait = status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
        if status < HTTPStatus.INTERNAL_SERVER_ERROR and not asks_to_wait:
            sent = error.request
            _logger.error("Prefect answered %s %s: %s", sent.method, sent.url.path, shortened(str(error)))
            if status in _TOO_LARGE and len(sent.content) > PREFECT_SERVER_API_MAX_PARAMETER_SIZE.value():
                return TooLarge("The settings are larger than Prefect stores.", next_step="leave some out")
            return FathomError(
                f"Prefect refused a request of this server ({status}).", next_step="see the server's log"
            )
    return NotReady(
        f"Prefect does not answer ({type(error).__name__}).",
        next_step="start Prefect again; runs in progress are not lost",
        retry_after=RETRY_SECONDS,
    )
