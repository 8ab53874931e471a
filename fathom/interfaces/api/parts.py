"""What the routes have in common: parameters, bodies of JSON, and streams of events."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header, Path, Query, Request
from fastapi.responses import StreamingResponse

from fathom.errors import WrongMediaType
from fathom.service.events import MEDIA_TYPE

JSON = "application/json"
RUN_ID = "df99f416-1f7e-4c63-94d9-a70b9f20c5f2"

RunId = Annotated[str, Path(description="Id of the run.", max_length=60, examples=[RUN_ID])]
Limit = Annotated[int, Query(ge=1, le=200, description="Maximum number of entries per page.")]
Cursor = Annotated[str, Query(max_length=300, description="`next` from the previous page.")]
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        description="A caller who sends the same key again gets the same run.",
    ),
]
LastEvent = Annotated[
    str, Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,12}$", description="Id of the last event you received.")
]
After = Annotated[
    int, Query(ge=0, lt=10**12, description="The same as Last-Event-ID, for clients that cannot set headers.")
]


def _json_only(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and not (kind.startswith("application/") and kind.endswith("+json")):
        raise WrongMediaType(f"The body must be JSON, not {kind[:60] or 'of no media type'}.")


JSON_ONLY = [Depends(_json_only)]
"""Dependencies of a route that takes a body: only JSON, and said to be JSON, which no form of another page can send."""


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = MEDIA_TYPE
