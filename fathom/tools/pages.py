"""Web pages as vendors and readers deliver them, and a tool's output made from them."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from fathom.errors import BudgetExceeded, FathomError, ToolError
from fathom.models import Bibliographic, SourceText, ToolFailure, ToolOutput
from fathom.storage.atomic import side_by_side
from fathom.storage.cache import TimedCache
from fathom.text.plain import clean_line, clean_text, clean_title
from fathom.text.urls import canonical_url, source_ids
from fathom.tools.warc import keep_cached, kept_with


def _finite(score: object) -> float:
    return float(score) if isinstance(score, int | float) and math.isfinite(score) else 0.0


Score = Annotated[float, BeforeValidator(_finite)]
"""A vendor's score; values that are not finite numbers count as 0."""


def _text(text: str) -> str:
    clean = clean_text(text)
    return clean if clean.strip() else ""


_DOI = re.compile(r"\A(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}/\S+)\Z", re.IGNORECASE)
_MOST_AUTHORS = 100  # a physics collaboration has thousands
_LONGEST_FIELD = 300  # characters


def clean_doi(doi: str) -> str:
    """Return a DOI without a prefix and in lower case, in which all its spellings agree; nothing if it is not a DOI."""
    found = _DOI.match(clean_line(doi)[:_LONGEST_FIELD])
    return found[1].lower() if found else ""


def _clean_reference(reference: Bibliographic | None) -> Bibliographic | None:
    """Return a reference that is fit to store and show; None if it is empty."""
    if not reference:
        return None
    authors = [clean_line(author)[:_LONGEST_FIELD] for author in reference.authors[:_MOST_AUTHORS]]
    clean = Bibliographic(
        authors=[author for author in dict.fromkeys(authors) if author],
        doi=clean_doi(reference.doi),
        venue=clean_line(reference.venue)[:_LONGEST_FIELD],
        licence=clean_line(reference.licence)[:_LONGEST_FIELD],
        full_text=reference.full_text if is_page(reference.full_text) else "",
        archived=clean_line(reference.archived)[:_LONGEST_FIELD],
        retracted=reference.retracted,
    )
    return clean if clean != Bibliographic() else None


class WebPage(BaseModel):
    """A page, cleaned: an excerpt, its whole text, or both."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, AfterValidator(clean_line)]
    title: Annotated[str, AfterValidator(clean_title)] = ""
    published: Annotated[str, AfterValidator(clean_line)] = ""
    score: float = 0.0  # comparable within one query only
    excerpt: Annotated[str, AfterValidator(_text)] = ""
    whole: Annotated[str, AfterValidator(_text)] = ""
    reference: Annotated[Bibliographic | None, AfterValidator(_clean_reference)] = None  # a catalogue's entry
    fields: dict[str, str] = {}  # of its header, for a page that was read
    kept_since: str = Field("", exclude=True)  # ISO 8601, UTC; for a page from the cache


class _Kept(BaseModel):
    pages: list[WebPage]


async def remembered(cache: TimedCache, key: str, ask: Callable[[], Awaitable[list[WebPage]]]) -> list[WebPage]:
    """Return the pages cached under a key, else request and cache them; an empty answer is not cached."""
    if kept := cache.load(key, _Kept):
        since = cache.since(key)
        keep_cached(cache, key)
        return [page.model_copy(update={"kept_since": since}) for page in kept.pages]
    with kept_with(cache, key):
        pages = await ask()
        if pages:
            cache.put(key, _Kept(pages=pages).model_dump_json())
    return pages


async def read_each(
    urls: Sequence[str], read: Callable[[str], Awaitable[WebPage]], at_once: int
) -> tuple[list[WebPage], Mapping[str, FathomError]]:
    """Read several pages, some of them at once; also return, by URL, why others cannot be read."""

    async def attempt(url: str) -> WebPage | FathomError:
        try:
            return await read(url)
        except (ToolError, BudgetExceeded) as error:
            return type(error)(f"{url}: {error.message}", next_step=error.next_step)

    answers = dict(zip(urls, await side_by_side(urls, attempt, at_once), strict=True))
    failed = {url: answer for url, answer in answers.items() if isinstance(answer, FathomError)}
    return [answer for answer in answers.values() if isinstance(answer, WebPage)], failed


def output(pages: Sequence[WebPage], failures: Sequence[ToolFailure] = ()) -> ToolOutput:
    """Return a tool's output made of pages; pages without a web address or a text, and repeated ones, are left out.

    Its age is the age of its oldest page from the cache.
    """
    first: dict[str, WebPage] = {}
    for page in pages:
        if is_page(page.url) and (page.whole or page.excerpt):
            first.setdefault(canonical_url(page.url), page)
    ids = source_ids(page.url for page in first.values())
    results = [
        SourceText(
            source_id=ids[page.url],
            url=page.url,
            title=_title(page),
            kind="web",
            published=page.published,
            fields=page.fields,
            score=page.score,
            full=bool(page.whole),
            text=page.whole or page.excerpt,
            snippet=page.excerpt,
            reference=page.reference,
        )
        for page in first.values()
    ]
    since = [page.kept_since for page in pages if page.kept_since]
    cached = bool(since) and len(since) == len(pages)
    return ToolOutput(results=results, failures=list(failures), cached=cached, retrieved=min(since, default=""))


def _title(page: WebPage) -> str:
    title = page.title or page.url
    if not (page.reference and page.reference.archived):
        return title
    told = f" (archived copy of {page.reference.archived})"
    return title.removesuffix(told) + told  # a source that is read again has it already


def is_page(url: str) -> bool:
    """Return whether a URL is a web address."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not any(c.isspace() for c in url)
    except ValueError:
        return False
