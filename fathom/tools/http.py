"""Requests to services over HTTP: one request, the meaning of its failures, retries, and XML."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from fathom.errors import ToolError, ToolRateLimited, ToolRejected, ToolTimeout, ToolUnavailable
from fathom.network import ENCODINGS, BodyTooLarge, check_sending, limit_body, retry_after, tls, turn, user_agent
from fathom.tools.warc import keep

if TYPE_CHECKING:
    import httpx

ATTEMPTS = 3
MAX_BYTES = 16 * 2**20  # of an answer: 20 whole pages, the most that a vendor sends, rarely take a tenth of it
ATTEMPT_SECONDS = 30.0
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0

# Errors of reading an answer that is not JSON or XML, or has another shape.
_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, SyntaxError, RecursionError)
_FEWER = "lower max_results, or check the address of the service"

T = TypeVar("T")


async def request(
    service: str,
    url: str,
    read: Callable[[httpx.Response], T],
    *,
    body: object = None,
    params: Mapping[str, str | int] | None = None,
    headers: Mapping[str, str] | None = None,
    remedies: Mapping[int, str] | None = None,
    detail: Callable[[httpx.Response], str] = lambda _: "",
) -> T:
    """Make one request to a service, by POST if it has a body, which is sent as JSON, and read its answer.

    A ValueError in `read` means that the answer is unreadable. `headers` are sent besides the User-Agent; `remedies`
    holds by status the user's remedy for a refusal; `detail` reads the service's own message from any answer but 200.

    Raises:
        ToolError: the request failed; the class says whether trying again can help.
    """
    method = "GET" if body is None else "POST"
    with service_errors(service):
        async with limited_client() as http:
            answer = await http.request(method, url, params=params, headers=headers, json=body)
        said = "" if answer.status_code == 200 else detail(answer)
        raise_status(service, answer.status_code, answer.headers, said, remedies)
        return read(answer)


def limited_client(**options: Any) -> httpx.AsyncClient:
    """Return a client whose answers are limited while they arrive, and kept; it takes the options of httpx.

    In `service_errors`, an answer of more than `MAX_BYTES`, on the wire or unpacked, is a ToolRejected.
    """
    import httpx

    headers = {"User-Agent": user_agent(), "Accept-Encoding": ENCODINGS}
    made = httpx.AsyncClient(verify=tls(), timeout=ATTEMPT_SECONDS, headers=headers, **options)
    made.event_hooks["request"][:0] = [_check]
    made.event_hooks["response"][:0] = [_limit, _keep]
    return made


async def _check(request: httpx.Request) -> None:
    check_sending("tools", str(request.url))


async def _limit(response: httpx.Response) -> None:
    limit_body(response, MAX_BYTES)


async def _keep(response: httpx.Response) -> None:
    await response.aread()
    await asyncio.to_thread(keep, str(response.url), response.status_code, response.headers, response.content)


@contextmanager
def service_errors(service: str) -> Iterator[None]:
    """Raise failures of the block's request to a service, or of reading the answer, as a `ToolError`."""
    import httpx

    try:
        yield
    except BodyTooLarge:
        limit = f"{MAX_BYTES / 2**20:g} MB"
        raise ToolRejected(f"The answer of {service} is larger than {limit}.", next_step=_FEWER) from None
    except httpx.TimeoutException as error:
        raise ToolTimeout(f"{service} did not answer in time.") from error
    except httpx.HTTPError as error:
        raise ToolUnavailable(f"{service} cannot be reached: {type(error).__name__}.") from error
    except _UNREADABLE as error:
        raise ToolUnavailable(f"The answer of {service} is unreadable.") from error


def raise_status(
    service: str, status: int, headers: Mapping[str, str], detail: str = "", remedies: Mapping[int, str] | None = None
) -> None:
    """Raise the error for the status of an answer, unless it is 200.

    The names of its headers are in lower case. `detail` is the answer's own message; `remedies` holds by status the
    user's remedy for a refusal.

    Raises:
        ToolError: the class says whether trying again can help.
    """
    if status == 200:
        return
    message = f"{service} answered {status}" + (f": {detail}" if detail else ".")
    if status == 408:
        error: ToolError = ToolTimeout(message)
    elif status == 429 or status >= 500:
        kind = ToolRateLimited if status == 429 else ToolUnavailable
        error = kind(message, retry_after=retry_after(headers, datetime.now(UTC)))
    else:
        error = ToolRejected(message, next_step=(remedies or {}).get(status, ""))
    error.status = status
    raise error


async def retrying(
    attempt: Callable[[], Awaitable[T]],
    provider: str = "",
    pace: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> T:
    """Make up to three attempts of 30 seconds each, 1 and 2 seconds or the service's Retry-After apart.

    Each waits for its turn at the provider, if one is named, and for `pace`; waits do not count as an attempt's time.

    Raises:
        ToolError: trying again cannot help, the attempts are used up, or Retry-After is more than 30 seconds.
    """
    pause = FIRST_PAUSE
    for _ in range(ATTEMPTS - 1):
        try:
            async with turn(provider), pace():
                return await _in_time(attempt)
        except ToolError as error:
            wait = pause if error.retry_after is None else error.retry_after
            if not error.retryable or wait > LONGEST_PAUSE:
                raise
        await asyncio.sleep(wait)
        pause *= 2
    async with turn(provider), pace():
        return await _in_time(attempt)


async def _in_time(attempt: Callable[[], Awaitable[T]]) -> T:
    try:
        async with asyncio.timeout(ATTEMPT_SECONDS):
            return await attempt()
    except TimeoutError as error:
        raise ToolTimeout(f"No answer within {ATTEMPT_SECONDS:g} seconds.") from error


def parse_xml(data: bytes) -> Any:
    """Return the root element (`lxml.etree`) of a document.

    Raises:
        ValueError: it is not XML, or declares its own entities, for which no service has a reason.
    """
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError("no XML") from error
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and next(declared.iterentities(), None) is not None:
        raise ValueError("XML with entities of its own")
    return root


def text_of(element: Any, path: str, namespaces: dict[str, str] | None = None) -> str:
    """Return the text of the first element at a path, nested elements included; nothing if there is none."""
    found = element.find(path, namespaces or {})
    return "" if found is None else "".join(found.itertext())
