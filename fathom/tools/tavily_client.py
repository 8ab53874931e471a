"""Tavily's client, with its failures brought into our classes where they enter."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fathom.errors import ToolError, ToolRateLimited, ToolRejected, ToolTimeout, ToolUnavailable
from fathom.tools.clean import clean_line
from fathom.tools.retry import seconds_to_wait

if TYPE_CHECKING:
    import httpx

__all__ = ["is_page", "tavily_client"]

API = "https://api.tavily.com"
_CREDENTIAL = (401, 403, 432, 433)  # 432 and 433: the plan's or the key's limit is used up


@asynccontextmanager
async def tavily_client(key: str, url: str | None) -> AsyncIterator[Any]:
    """Open an `AsyncTavilyClient` for one request; what goes wrong inside the block is raised as a `ToolError`."""
    import httpx
    from tavily import AsyncTavilyClient
    from tavily.errors import TimeoutError as TavilyTimeout

    # The vendor's client throws Retry-After away and has no common error class, so answers are judged before it.
    hooks = {"response": [_raise_failure]}
    try:
        async with httpx.AsyncClient(base_url=url or API, event_hooks=hooks, verify=_tls()) as http:
            yield AsyncTavilyClient(key, client=http)
    except (TavilyTimeout, httpx.TimeoutException) as error:
        raise ToolTimeout("Tavily gave no answer in time.") from error
    except httpx.HTTPError as error:
        raise ToolUnavailable(f"Tavily cannot be reached: {type(error).__name__}.") from error
    except (ValueError, AttributeError) as error:  # no JSON, not an object, or of another shape than our models
        raise ToolUnavailable("Tavily's answer is unreadable.") from error


@cache
def _tls() -> ssl.SSLContext:
    """Return the certificates that httpx trusts; reading them takes longer than a search over a local network."""
    import httpx

    return httpx.create_ssl_context()


def is_page(url: str) -> bool:
    """Return whether a URL is one of a web page that can be asked for."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not any(c.isspace() for c in url)
    except ValueError:
        return False


async def _raise_failure(response: httpx.Response) -> None:
    if not response.is_error:
        return
    await response.aread()
    raise _failure(response.status_code, _detail(response), response.headers.get("retry-after"))


def _failure(status: int, detail: str, retry_after: str | None) -> ToolError:
    message = f"Tavily answered {status}" + (f": {detail}" if detail else ".")
    if status in _CREDENTIAL:
        return ToolRejected(message, next_step="check TAVILY_API_KEY and the limits of its plan")
    if status == 429:
        return ToolRateLimited(message, retry_after=seconds_to_wait(retry_after))
    if status == 408:
        return ToolTimeout(message)
    if status >= 500:
        return ToolUnavailable(message, retry_after=seconds_to_wait(retry_after))
    return ToolRejected(message)


def _detail(response: httpx.Response) -> str:
    try:
        detail = response.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return ""
    text = detail.get("error") if isinstance(detail, dict) else detail
    return clean_line(text)[:200] if isinstance(text, str) else ""
