"""The Tavily search and extract protocol, and the ways in which it fails.

Behaviours: ok, empty, `bad_json`, the errors of `_ERRORS`; the server knows hang, drop and the behaviours of `floods`.
"""

from __future__ import annotations

import html
import re
from typing import Any

from tests.stubs.pages import Page, page, share, urls
from tests.stubs.replies import Reply
from tests.stubs.settings import Settings

__all__ = ["hits", "serve"]

# The real ones differ at every call; answers here are the same bytes every time.
_TRAILER = {"response_time": 0.42, "request_id": "00000000-0000-4000-8000-000000000000"}

_ERRORS = {
    "400": (400, "The request is not valid."),
    "401": (401, "Unauthorized: missing or invalid API key."),
    "429": (429, "Your request has been blocked due to excessive requests."),
    "432": (432, "This request exceeds your plan's set usage limit."),
    "500": (500, "Internal server error."),
}


def serve(kind: str, body: dict[str, Any], authorized: bool, behaviour: str, settings: Settings) -> Reply:
    """Answer one search or extract; `behaviour` "ok" or a scripted failure.

    Raises:
        ValueError: the behaviour is unknown.
    """
    if not authorized:
        behaviour = "401"
    elif len(body.get("query", "")) > 400:
        return Reply(400, {"detail": {"error": "Query is too long. Max query length is 400 characters."}})
    if behaviour in _ERRORS:
        status, message = _ERRORS[behaviour]
        headers = {"Retry-After": str(settings.retry_after)} if status == 429 else {}
        return Reply(status, {"detail": {"error": message}}, headers)
    if behaviour == "bad_json":
        return Reply(200, '{"results": [{"url": ')
    if behaviour not in ("ok", "empty"):
        raise ValueError(f"unknown behaviour {behaviour!r}")
    empty = behaviour == "empty"
    return Reply(200, _search(body, settings, empty) if kind == "search" else _extract(body, settings, empty))


def hits(query: str, most: int, settings: Settings) -> list[Page]:
    """Return the pages that a query finds, the best first: planted ones, then its own."""
    count = min(most, settings.results or 20)
    noise = bool(settings.noise and re.search(settings.noise, query))
    planted = [_planted(url, text) for url, text in settings.planted.items()][:count]
    found = urls(query, count, shared=not noise)
    own = [page(url, settings.page_bytes, noise=noise, forms=settings.forms) for url in found]
    return [*planted, *own][:count]


def _search(body: dict[str, Any], settings: Settings, empty: bool) -> dict[str, Any]:
    query = str(body["query"])
    found = [] if empty else hits(query, body.get("max_results") or 5, settings)
    results = [
        {
            "url": hit.url,
            "title": hit.title,
            "content": hit.excerpt,
            "score": round(0.95 - 0.04 * rank, 2),
            "raw_content": _raw(hit, settings) if body.get("include_raw_content") else None,
        }
        for rank, hit in enumerate(found)
    ]
    return {"query": query, "follow_up_questions": None, "answer": None, "images": [], "results": results, **_TRAILER}


def _planted(url: str, text: str) -> Page:
    said = html.unescape(re.sub(r"<[^>]*>", " ", text))
    return Page(url, said[:200], said, "", said[:200])


def _raw(hit: Page, settings: Settings) -> str | None:
    return None if share(hit.url, "raw") < settings.without_raw else hit.text


def _extract(body: dict[str, Any], settings: Settings, empty: bool) -> dict[str, Any]:
    wanted = body["urls"] if isinstance(body["urls"], list) else [body["urls"]]
    failed = [url for url in wanted if empty or (settings.fail_extract and re.search(settings.fail_extract, url))]
    # A page of noise is told by its query, which is the first part of its path.
    noise = {url for url in wanted if settings.noise and re.search(settings.noise, url.replace("-", " "))}
    return {
        "results": [
            {
                "url": url,
                "raw_content": settings.planted.get(url)
                or page(url, settings.page_bytes, noise=url in noise, forms=settings.forms).text,
                "images": [],
            }
            for url in wanted
            if url not in failed
        ],
        "failed_results": [{"url": url, "error": "Failed to fetch url"} for url in failed],
        **_TRAILER,
    }
