"""What the routes have in common."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request

from fathom.errors import WrongMediaType

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


def _json_only(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and not (kind.startswith("application/") and kind.endswith("+json")):
        raise WrongMediaType(f"The body must be JSON, not {kind[:60] or 'of no media type'}.")


JSON_ONLY = [Depends(_json_only)]
"""Dependencies of a route that takes a body: only JSON, and said to be JSON, which no form of another page can send."""


def described(example: Any, media: str = JSON) -> dict[str, Any]:
    """Return what the document of the API says of an answer, with an example."""
    return {"content": {media: {"example": example}}}
