"""Planted pages as a web server serves them, and the ways in which servers fail.

Behaviours: ok, empty, binary, and the statuses of `_ERRORS`; the server knows two more, hang and drop.
"""

from __future__ import annotations

from tests.stubs.replies import Reply
from tests.stubs.settings import Settings

__all__ = ["planted"]

_ERRORS = {"401": 401, "429": 429, "500": 500}


def planted(url: str, behaviour: str, settings: Settings) -> Reply:
    """Answer a request for a page; `behaviour` "ok" or a scripted failure.

    Raises:
        ValueError: the behaviour is unknown.
    """
    page = settings.planted.get(url)
    if behaviour in _ERRORS:
        headers = {"Retry-After": str(settings.retry_after)} if behaviour == "429" else {}
        return Reply(
            _ERRORS[behaviour], f"<p>Error {behaviour}: something failed.</p>", headers, content_type="text/html"
        )
    match behaviour:
        case "ok":
            return Reply(200 if page else 404, page or "", content_type="text/html")
        case "empty":
            return Reply(200, "", content_type="text/html")
        case "binary":
            return Reply(200, "MZ\x00\x01\x02", content_type="text/html")
        case _:
            raise ValueError(f"unknown behaviour {behaviour!r}")
