"""Which way a count is better, how far it may be worse, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from benchmarks.guard.measurements import Counts

BYTES = 0.02
"""Share by which sizes may grow: they hold durations and dates, whose length differs from run to run."""

_BETTER_HIGH = frozenset(
    (
        "right answers",
        "right refusals",
        "claims",
        "claims supported",
        "claims alike",
        "citations",
        "sources cited",
        "facts for the writer",
    )
)

Verdict = Literal["same", "better", "worse", "new", "gone"]


class Change(NamedTuple):
    """A count, as it was accepted and as it is now."""

    measurement: str
    name: str
    accepted: int | None
    now: int | None
    verdict: Verdict


def changes(accepted: Mapping[str, Counts], now: Mapping[str, Counts]) -> Iterator[Change]:
    """Yield what became of each count."""
    for measurement in dict.fromkeys([*accepted, *now]):
        old, new = accepted.get(measurement, {}), now.get(measurement, {})
        for count in dict.fromkeys([*old, *new]):
            was, found = old.get(count), new.get(count)
            yield Change(measurement, count, was, found, verdict(count, was, found))


def verdict(count: str, accepted: int | None, now: int | None) -> Verdict:
    """Return whether a count is better or worse than accepted by more than it may differ."""
    if accepted is None or now is None:
        return "new" if accepted is None else "gone"
    if abs(now - accepted) <= (BYTES * accepted if "bytes" in count else 0):
        return "same"
    return "better" if (now > accepted) is (count in _BETTER_HIGH) else "worse"
