"""The record of a request: what came in, and what became of it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Record"]


@dataclass
class Record:
    """A request: when it came in, and when its answer was fully written (never, if the client went away before).

    Times are `time.monotonic()`, which all processes of this machine share. `fingerprint` is the SHA-256 of the
    request body with its keys sorted: two requests that agree in it are a repetition. `answer` is what was sent back,
    as it was before it became JSON; the log does not have it, and adds the seconds since the epoch as `at`.
    """

    n: int
    kind: str  # llm, models, show, search, extract, searxng, page, embeddings or pages
    role: str  # of an llm request; else the kind
    fingerprint: str
    body: dict[str, Any]
    started: float
    behaviour: str = "ok"
    ended: float | None = None
    status: int | None = None
    answer: Any = None
    usage: dict[str, int] = field(default_factory=dict)
    sent: int = 0  # bytes of an answer of `floods`
    tokens: int = 0  # of a streamed answer, written so far
    repeated: int = 0  # of these, the ones of a loop without end

    def event(self, name: str) -> dict[str, Any]:
        """Return the record as a line of the log; `name` is start or end."""
        line = asdict(self)
        started, ended, _ = line.pop("started"), line.pop("ended"), line.pop("answer")
        at = started if name == "start" else ended
        return {"event": name, "time": at, "at": at + time.time() - time.monotonic(), **line}
