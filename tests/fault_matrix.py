"""What happens to a run when a model fails: each fault at each role, with its ending and its bounds.

The declarations are what `test_model_faults` holds the pipeline to and what `docs/faults.md` shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from fathom.run.engine import MOST_FAILURES

__all__ = ["CELLS", "FAULTS", "REQUESTS", "Cell", "Fault"]

End = Literal["complete", "degraded", "failed"]

WRITTEN = {"planner": 1, "researcher": 3, "compressor": 3, "critic": 1, "outline": 1, "section": 4}
CHECKED = {"judge": 2, "correction": 4}
"""Roles that are asked only if those before them answer: nobody judges a quotation or corrects what nobody judged."""

REQUESTS = {**WRITTEN, **CHECKED}
"""Requests that each role makes in the run of the tests when nothing fails: three steps, one round, a reflection.

The judge sees three sections and then what was corrected in them; each of four sections is corrected once.
"""

AT_ONCE = {"correction": 3}
"""Requests that a role makes at the same time, before it is known that the first one fails."""

TYPED = tuple(role for role in REQUESTS if role != "section")
"""Roles that answer in JSON; a section is prose."""

SOME = ("planner", "section")
"""Roles of both kinds: the first, which answers in JSON, and one that answers in prose.

What a service does for good is told by the client, whoever asks; `500 always` shows what each role does without one.
"""

BACKOFF, DEADLINE, RESTS = 2 + 4 + 8 + 16, 120, 30 + 60


@dataclass(frozen=True)
class Fault:
    """A way in which a provider fails.

    Attributes:
        name: what happens, for a person.
        script: the stub's behaviours for a role, used up in order; see `tests/stubs`.
        ending: of the run; `exceptions` by role.
        extra: requests on top of the undisturbed ones that a role may make; `most` bounds all that follow each other.
        factor: requests for each undisturbed one.
        invalid: no answer is ever valid, so the model is not asked after its second failure at a role.
        waits: seconds a call may wait in between at the default settings.
        roles: where it applies.
        alone: what it does at one role changes what the others do, so it is tried at one role at a time.
        context_window, retry_after, refuses: of the stub.
    """

    name: str
    script: list[str]
    ending: End
    exceptions: dict[str, End] = field(default_factory=dict)
    scripts: dict[str, list[str]] = field(default_factory=dict)
    extra: int = 0
    factor: int = 1
    most: int | None = None
    invalid: bool = False
    waits: int = 0
    roles: tuple[str, ...] = tuple(REQUESTS)
    alone: bool = False
    context_window: int = 0
    retry_after: float = 0.2
    refuses: frozenset[str] = frozenset()

    def script_for(self, role: str) -> list[str]:
        """Return the behaviours of the stub for a role."""
        return list(self.scripts.get(role, self.script))


@dataclass(frozen=True)
class Cell:
    """One fault at one role: how the run ends, and how many requests the role makes at most."""

    fault: Fault
    role: str

    @property
    def ending(self) -> End:
        """How the run ends."""
        return self.fault.exceptions.get(self.role, self.fault.ending)

    @property
    def requests(self) -> int:
        """The most requests that the role makes."""
        calls, at_once = REQUESTS[self.role], AT_ONCE.get(self.role, 1)
        if self.fault.most is not None:
            return self.fault.most * at_once
        calls = min(calls, max(MOST_FAILURES, at_once)) if self.fault.invalid else calls
        return calls * self.fault.factor + self.fault.extra


FAULTS = [
    Fault("JSON in a fence, with a trailing comma", ["untidy_json*"], "complete", roles=TYPED),
    Fault("broken JSON once", ["broken_json"], "complete", extra=1, roles=TYPED),
    Fault("broken JSON always", ["broken_json*"], "degraded", factor=2, invalid=True, roles=TYPED),
    Fault("truncated once", ["truncated"], "complete", extra=1),
    Fault("truncated always", ["truncated*"], "degraded", factor=2, invalid=True),
    Fault("JSON instead of prose once", ["json_prose"], "complete", extra=1, roles=("section",)),
    Fault("JSON instead of prose always", ["json_prose*"], "degraded", factor=2, invalid=True, roles=("section",)),
    Fault("repeats itself once", ["repeats"], "complete", extra=1),
    Fault("repeats itself always", ["repeats*"], "degraded", factor=3, invalid=True, roles=tuple(WRITTEN)),
    Fault("thinks without end once", ["thinks_without_end"], "complete", extra=1),
    Fault("empty once", ["empty"], "complete", extra=1),
    Fault("empty always", ["empty*"], "degraded", factor=2, invalid=True, roles=tuple(WRITTEN)),
    Fault("refused", ["refusal*"], "degraded"),
    Fault("blocked by the safety filter", ["content_policy*"], "degraded", roles=tuple(WRITTEN)),
    Fault("no usage figures", ["no_usage*"], "complete"),
    Fault("no choices once", ["no_choices"], "complete", extra=1, waits=2),
    Fault("a gateway's HTML page once", ["html"], "complete", extra=1, waits=2),
    Fault("30 MB of HTML once", ["flood"], "complete", extra=1, waits=2),
    Fault("30 MB of HTML always", ["flood*"], "degraded", factor=2, waits=2 + RESTS, roles=SOME, alone=True),
    Fault("429 with Retry-After once", ["429"], "complete", extra=1, waits=60),
    Fault("429 always, for an hour", ["429*"], "degraded", most=1, roles=SOME, alone=True, retry_after=3_600),
    Fault("500 once", ["500"], "complete", extra=1, waits=2),
    Fault("500 always", ["500*"], "degraded", factor=5, waits=BACKOFF + RESTS, alone=True),
    Fault("hangs once", ["hang"], "complete", extra=1, waits=DEADLINE + 2),
    Fault(
        "hangs always",
        ["hang*"],
        "degraded",
        factor=2,
        waits=2 * DEADLINE + 2 + RESTS,
        roles=SOME,
        alone=True,
    ),
    Fault("falls silent in the middle once", ["silent"], "complete", extra=1, waits=DEADLINE + 2),
    Fault(
        "falls silent in the middle always",
        ["silent*"],
        "degraded",
        factor=2,
        waits=2 * DEADLINE + 2 + RESTS,
        roles=SOME,
        alone=True,
    ),
    Fault("connection dropped once", ["drop"], "complete", extra=1, waits=2),
    Fault("the connection breaks in the middle once", ["cut_stream"], "complete", extra=1, waits=2),
    Fault("refuses a parameter", ["ok*"], "complete", extra=1, refuses=frozenset({"stream_options"})),
    Fault(
        "context limit once",
        ["context_limit"],
        "complete",
        # Their prompts hold nothing that could be left out.
        exceptions={"planner": "degraded", "judge": "degraded", "correction": "degraded"},
        # Before that there are no notes, or a section has but one; the summary, written last, has all of them.
        scripts={"researcher": ["ok", "ok", "context_limit"], "section": ["ok", "ok", "ok", "context_limit"]},
        extra=1,
        alone=True,
    ),
    Fault("context limit always", ["context_limit*"], "degraded", factor=5),
    Fault(
        "a window smaller than the material", ["ok*"], "complete", factor=4, context_window=1_200, roles=tuple(WRITTEN)
    ),
    Fault("a window smaller than any prompt", ["ok*"], "degraded", factor=5, context_window=200, roles=tuple(WRITTEN)),
    Fault("wrong key", ["401*"], "failed", most=1, roles=SOME, alone=True),
]

CELLS = [Cell(fault, role) for fault in FAULTS for role in fault.roles]


def runs() -> Iterator[list[Cell]]:
    """Yield the cells of one run at a time.

    A fault that is tried alone takes one for each role, and so does one that keeps another role from being asked.
    """
    for fault in FAULTS:
        cells = [cell for cell in CELLS if cell.fault is fault]
        together = cells if fault.ending == "complete" else [cell for cell in cells if cell.role not in CHECKED]
        together = [] if fault.alone else together
        yield from filter(None, [together, *([cell] for cell in cells if cell not in together)])


def table() -> str:
    """Return the matrix in Markdown."""
    lines = [
        "| the model's answer | " + " | ".join(REQUESTS) + " | a call waits at most |",
        "|---|" + "---|" * len(REQUESTS) + "--:|",
    ]
    for fault in FAULTS:
        cells = {cell.role: f"{cell.ending}, {cell.requests}" for cell in CELLS if cell.fault is fault}
        lines.append(
            f"| {fault.name} | " + " | ".join(cells.get(role, "") for role in REQUESTS) + f" | {fault.waits} s |"
        )
    return "\n".join(lines)
