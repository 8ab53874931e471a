"""Conversations: a question with its follow-ups, and theirs, as far as somebody may see them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from fathom.client.shapes import RunSummary
from fathom.flows.runs.finding import KnownRun


@dataclass(frozen=True)
class Thread:
    """A conversation. `runs`: its questions, the newest first; never empty."""

    runs: Sequence[RunSummary]

    @property
    def title(self) -> str:
        """The last name that one of its questions was given; else its first question."""
        return next((run.title for run in self.runs if run.title), self.runs[-1].question)

    @property
    def cost_usd(self) -> float:
        """What its questions have cost together, as far as that is known."""
        return sum(run.cost_usd or 0.0 for run in self.runs)


@dataclass(frozen=True)
class ThreadList:
    """A page of conversations, the one with the newest question first; `next` is the cursor of the page after it."""

    threads: Sequence[Thread]
    next: str | None = None


def grouped(lines: Sequence[KnownRun]) -> list[list[KnownRun]]:
    """Return runs by conversation, in each the newest first, and first the conversation with the newest question.

    Follow-ups of a run that is gone belong together.
    """
    parents = {line.run_id: line.stored.parent for line in lines}
    groups = defaultdict[str, list[KnownRun]](list)
    for line in sorted(lines, key=lambda line: line.order, reverse=True):
        first, seen = line.run_id, set[str]()
        while (parent := parents.get(first)) and first not in seen:  # a damaged record may lead in a circle
            seen.add(first)
            first = parent
        groups[first].append(line)
    return list(groups.values())
