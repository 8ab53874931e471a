"""What happens to a run when a search, an extraction or a page fails: each fault at each place, and its bounds.

The declarations are what `test_tool_faults` holds the pipeline to and what `docs/faults.md` shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fathom.models import Ending
from fathom.tools.http import ATTEMPT_SECONDS, ATTEMPTS, FIRST_PAUSE, LONGEST_PAUSE

__all__ = ["FAULTS", "PLACES", "ToolCell", "ToolFault", "tool_runs", "tool_table"]

PLACES = {
    "search": {"search": 2},
    "search, with SearXNG": {"search": 2},
    "extract": {"extract": 2},
    "extract and pages": {"extract": 2, "page": 4},
    "fetch": {"page": 2},
}
"""Where faults strike: services, each with the calls of an undisturbed run of two steps, one after the other.

`search` and `extract` are Tavily's; a `page` is read by Fathom itself, as it is when Tavily cannot.
"""

_ENDINGS = {"c": Ending.complete, "d": Ending.degraded, "n": Ending.insufficient_evidence}
_PAUSES = FIRST_PAUSE * (2 ** (ATTEMPTS - 1) - 1)


@dataclass(frozen=True)
class ToolFault:
    """A way in which a service fails.

    Attributes:
        name: what happens, for a person.
        script: the stub's behaviours, used up in order; see `tests/stubs`.
        endings: of the run at each place: complete, degraded, no evidence.
        extra: requests on top of the undisturbed ones.
        attempts: requests for each undisturbed one.
        waits: seconds that one call to a vendor takes at most, at the default pauses.
        pages: the script of pages, where it is another.
        retry_after: of the stub.
    """

    name: str
    script: list[str]
    endings: str
    extra: int = 0
    attempts: int = 1
    waits: float = _PAUSES
    pages: list[str] = field(default_factory=list)
    retry_after: float = 0.02

    @property
    def hangs(self) -> bool:
        """Whether time has to run out."""
        return self.script[0].startswith("hang")


@dataclass(frozen=True)
class ToolCell:
    """One fault at one place: how the run ends, and how many requests it makes at most."""

    fault: ToolFault
    place: str

    @property
    def ending(self) -> Ending:
        """How the run ends."""
        return _ENDINGS[self.fault.endings[list(PLACES).index(self.place)]]

    @property
    def said(self) -> str:
        """The ending as the table shows it."""
        return "no evidence" if self.ending is Ending.insufficient_evidence else self.ending.value

    @property
    def requests(self) -> dict[str, int]:
        """The most requests to each service."""
        return {name: calls * self.fault.attempts + self.fault.extra for name, calls in PLACES[self.place].items()}

    @property
    def scripts(self) -> dict[str, list[str]]:
        """What the stubs do."""
        pages = self.fault.pages or self.fault.script
        return {name: list(pages if name == "page" else self.fault.script) for name in PLACES[self.place]}


FAULTS = [
    ToolFault("429 with Retry-After once", ["429"], "ccccc", extra=1, waits=LONGEST_PAUSE),
    ToolFault("429 always", ["429*"], "nccdn", attempts=ATTEMPTS, waits=LONGEST_PAUSE * (ATTEMPTS - 1)),
    ToolFault("429 always, for an hour", ["429*"], "nccdn", waits=0, retry_after=3_600),
    ToolFault("500 once", ["500"], "ccccc", extra=1, waits=FIRST_PAUSE),
    ToolFault("500 during one of two calls", ["500"] * ATTEMPTS, "dcccc", extra=ATTEMPTS),
    ToolFault("500 always", ["500*"], "nccdn", attempts=ATTEMPTS),
    ToolFault("hangs once", ["hang"], "ccccc", extra=1, waits=ATTEMPT_SECONDS + FIRST_PAUSE),
    ToolFault("hangs always", ["hang*"], "nccdn", attempts=ATTEMPTS, waits=ATTEMPT_SECONDS * ATTEMPTS + _PAUSES),
    ToolFault("connection dropped once", ["drop"], "ccccc", extra=1, waits=FIRST_PAUSE),
    ToolFault("connection dropped always", ["drop*"], "nccdn", attempts=ATTEMPTS),
    ToolFault("wrong key; of a page, a login", ["401*"], "nccdn", waits=0),
    ToolFault("unreadable; of a page, a program", ["bad_json*"], "nccdn", attempts=ATTEMPTS, pages=["binary*"]),
    ToolFault("30 MB", ["json_flood*"], "nccdn", waits=0),
    ToolFault("30 MB, zipped into 30 KB", ["bomb*"], "nccdn", waits=0),
    ToolFault("empty", ["empty*"], "nccdn", waits=0),
]

TOGETHER = (("search", "extract and pages"), ("search, with SearXNG", "extract"), ("fetch",))
"""Places that one run can try at once, unless a fault at one of them keeps the run from getting to the other."""


def tool_runs() -> Iterator[list[ToolCell]]:
    """Yield the cells of one run at a time."""
    for fault in FAULTS:
        for places in TOGETHER:
            cells = [ToolCell(fault, place) for place in places]
            apart = any(cell.ending is Ending.insufficient_evidence for cell in cells)
            yield from ([cell] for cell in cells) if apart else [cells]


def tool_table() -> str:
    """Return the matrix in Markdown."""
    lines = [
        "| the service | " + " | ".join(PLACES) + " | a call takes at most |",
        "|---|" + "---|" * len(PLACES) + "--:|",
    ]
    for fault in FAULTS:
        cells = [ToolCell(fault, place) for place in PLACES]
        said = [f"{c.said}, {' + '.join(map(str, c.requests.values()))}" for c in cells]
        lines.append(f"| {fault.name} | " + " | ".join(said) + f" | {fault.waits:g} s |")
    return "\n".join(lines)
