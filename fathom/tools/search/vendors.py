"""What the vendors of the web have in common: what a page is to them, and how their failures become ours."""

from __future__ import annotations

import math
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Annotated, Protocol
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from fathom.errors import ToolError, ToolRateLimited, ToolRejected, ToolTimeout, ToolUnavailable
from fathom.models import SourceText, ToolFailure, ToolOutput
from fathom.storage.cache import TimedCache
from fathom.text.cleaning import clean_line, clean_text, clean_title
from fathom.text.urls import canonical_url, source_ids
from fathom.tools.http import seconds_to_wait

if TYPE_CHECKING:
    import httpx


def _finite(score: object) -> float:
    return float(score) if isinstance(score, int | float) and math.isfinite(score) else 0.0


Score = Annotated[float, BeforeValidator(_finite)]
"""A vendor's score; what is no number counts as 0."""


def _text(text: str) -> str:
    clean = clean_text(text)
    return clean if clean.strip() else ""


class WebPage(BaseModel):
    """A page as a vendor delivers it, cleaned: an excerpt, its whole text, or both."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, AfterValidator(clean_line)]
    title: Annotated[str, AfterValidator(clean_title)] = ""
    published: Annotated[str, AfterValidator(clean_line)] = ""
    score: float = 0.0  # comparable within one query only
    excerpt: Annotated[str, AfterValidator(_text)] = ""
    whole: Annotated[str, AfterValidator(_text)] = ""
    kept_since: str = Field("", exclude=True)  # ISO 8601, UTC; for a page from the cache


class SearchVendor(Protocol):
    """Finds pages."""

    name: str

    async def search(self, query: str, most: int) -> list[WebPage]:
        """Return at most so many pages; trying again is up to the vendor's module.

        Raises:
            ToolError: it failed for good.
        """
        ...


class PageVendor(Protocol):
    """Reads pages in full."""

    name: str

    async def read(self, urls: Sequence[str]) -> tuple[list[WebPage], dict[str, ToolError]]:
        """Return the pages that could be read and, by URL, why others could not.

        Raises:
            ToolError: it failed for good, and for all of them.
        """
        ...


class _Kept(BaseModel):
    pages: list[WebPage]


async def remembered(cache: TimedCache, key: str, ask: Callable[[], Awaitable[list[WebPage]]]) -> list[WebPage]:
    """Return the pages that were kept under a key, else ask for them and keep them; finding nothing is not kept."""
    if kept := cache.load(key, _Kept):
        since = cache.since(key)
        return [page.model_copy(update={"kept_since": since}) for page in kept.pages]
    pages = await ask()
    if pages:
        cache.put(key, _Kept(pages=pages).model_dump_json())
    return pages


def output(pages: Sequence[WebPage], failures: Sequence[ToolFailure] = ()) -> ToolOutput:
    """Return what a tool returns for some pages; they are as old as the oldest that was kept."""
    since = [page.kept_since for page in pages if page.kept_since]
    return ToolOutput(
        results=_source_texts(pages),
        failures=list(failures),
        cached=bool(since) and len(since) == len(pages),
        retrieved=min(since, default=""),
    )


def _source_texts(pages: Sequence[WebPage]) -> list[SourceText]:
    """Return the pages that have an address and a text, each once: the first that bears its address."""
    kept: dict[str, WebPage] = {}
    for page in pages:
        if is_page(page.url) and (page.whole or page.excerpt):
            kept.setdefault(canonical_url(page.url), page)
    ids = source_ids(page.url for page in kept.values())
    return [
        SourceText(
            source_id=ids[page.url],
            url=page.url,
            title=page.title or page.url,
            kind="web",
            published=page.published,
            score=page.score,
            full=bool(page.whole),
            text=page.whole or page.excerpt,
            snippet=page.excerpt,
        )
        for page in kept.values()
    ]


def as_failure(error: ToolError, replaced_by: str = "") -> ToolFailure:
    """Return a failure as the coverage table shows it, with the name of the vendor that made it good."""
    return ToolFailure(code=error.code, message=error.message, replaced_by=replaced_by)


def is_page(url: str) -> bool:
    """Return whether a URL is one of a web page that can be asked for."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not any(c.isspace() for c in url)
    except ValueError:
        return False


@contextmanager
def vendor_errors(vendor: str) -> Iterator[None]:
    """Raise as a `ToolError` what goes wrong inside the block between us and a vendor."""
    import httpx

    try:
        yield
    except httpx.TimeoutException as error:
        raise ToolTimeout(f"{vendor} gave no answer in time.") from error
    except httpx.HTTPError as error:
        raise ToolUnavailable(f"{vendor} cannot be reached: {type(error).__name__}.") from error
    except (ValueError, AttributeError) as error:  # no JSON, not an object, or of another shape than our models
        raise ToolUnavailable(f"{vendor}'s answer is unreadable.") from error


def raise_status(vendor: str, response: httpx.Response, detail: str, refused: dict[int, str]) -> None:
    """Raise what a vendor's status means, unless it is a success.

    Args:
        vendor: its name.
        response: its answer.
        detail: what the answer says of the failure.
        refused: by status, what the user can do about a refusal.
    """
    status = response.status_code
    if response.is_success:
        return
    message = f"{vendor} answered {status}" + (f": {detail}" if detail else ".")
    wait = seconds_to_wait(response.headers.get("retry-after"))
    if status == 429:
        raise ToolRateLimited(message, retry_after=wait)
    if status == 408:
        raise ToolTimeout(message)
    if status >= 500:
        raise ToolUnavailable(message, retry_after=wait)
    raise ToolRejected(message, next_step=refused.get(status, ""))


@cache
def tls() -> ssl.SSLContext:
    """Return the certificates that httpx trusts; reading them takes longer than a search over a local network."""
    import httpx

    return httpx.create_ssl_context()
