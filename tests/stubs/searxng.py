"""The JSON interface of SearXNG, and the ways in which it fails: plain or HTML error pages, engines that do not answer.

Behaviours: ok, empty, silent (no engine answered), `bad_json`, the errors of `_ERRORS`; the server knows hang, drop
and the behaviours of `floods`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.stubs.replies import Reply
from tests.stubs.settings import Settings
from tests.stubs.tavily import hits

__all__ = ["serve"]

_ERRORS = {"403": (403, "Forbidden"), "429": (429, "Too Many Requests"), "500": (500, "Internal Server Error")}


def serve(query: dict[str, str], behaviour: str, settings: Settings) -> Reply:
    """Answer one search; `behaviour` "ok" or a scripted failure.

    Raises:
        ValueError: the behaviour is unknown.
    """
    if query.get("format") != "json":
        behaviour = "403"
    if behaviour in _ERRORS:
        status, title = _ERRORS[behaviour]
        headers = {"Retry-After": str(settings.retry_after)} if status == 429 else {}
        return Reply(status, f"<!doctype html>\n<title>{title}</title>", headers, content_type="text/html")
    if behaviour == "bad_json":
        return Reply(200, "<html>Verifying your browser</html>", content_type="text/html")
    if behaviour not in ("ok", "empty", "silent"):
        raise ValueError(f"unknown behaviour {behaviour!r}")
    found = hits(query["q"], 10, settings) if behaviour == "ok" else []
    results: list[dict[str, Any]] = [
        {
            "url": hit.url,
            "title": hit.title,
            "content": hit.excerpt,
            "publishedDate": None,
            "thumbnail": "",
            "engine": "brave",
            "engines": ["brave"],
            "template": "default.html",
            "parsed_url": [*urlsplit(hit.url), ""],
            "positions": [rank],
            "category": "general",
            "score": round(1 / rank, 4),
        }
        for rank, hit in enumerate(found, 1)
    ]
    unresponsive = (
        [["brave", "Suspended: too many requests"], ["wikipedia", "timeout"]] if behaviour == "silent" else []
    )
    lists: dict[str, list[str]] = {"answers": [], "corrections": [], "infoboxes": [], "suggestions": []}
    return Reply(200, {"query": query["q"], "results": results, **lists, "unresponsive_engines": unresponsive})
