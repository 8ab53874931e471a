"""The comparison of two runs as data: `changes.json`."""

from __future__ import annotations

from operator import not_
from typing import Literal

from pydantic import Field

from fathom.models import Answered, Model

CHANGES = "changes.json"
CHANGES_FILES = (CHANGES, "changes.md", "changes.html")
"""The files in the folder of a watch's run; the last two say the same to a reader."""

About = Literal["number", "date", "name", "negation", "opposite", "words"]
Kind = Literal["changed", "new", "gone", "disputed", "settled"]


class Place(Model):
    """A source, as a reader finds it."""

    source_id: str
    url: str
    title: str


class Statement(Model):
    """One side of a change: a claim of a report, what its sources say, and where."""

    claim: int = 0  # its number in the report; 0: only the source says it
    sentence: str  # of the report, or of the source
    passages: list[str]  # the sources' own words
    sources: list[Place]


class Difference(Model):
    """A value that changed. A side is empty if its sentence has no such value."""

    about: About
    before: str
    after: str


class Change(Model):
    """Something that the sources say now and did not say before, or the other way round.

    A `changed` sentence has both sides, and the values in which they differ. A claim is `disputed` when a source newly
    contradicts it, and `settled` when no source contradicts it any more; the contradicting sentences are the passages
    of the side that has them.
    """

    kind: Kind
    before: Statement | None = None
    after: Statement | None = None
    differences: list[Difference] = []
    note: str = ""  # a note for the reader


class Compared(Model):
    """One of the two runs."""

    run_id: str
    started: str  # ISO 8601, UTC
    claims: int = 0
    answered: Answered | None = None  # None: it has no report


class Changes(Model):
    """What changed from one run to a later one, the most telling first.

    `unchanged` counts the claims of the later report whose evidence the earlier run had as well. `unmentioned` counts
    the claims of the earlier report that still hold, although the later report does not state them. `unread` lists the
    claims whose sources the later run did not read, so that nothing is known about them.
    """

    query: str
    language: str = Field("", exclude_if=not_)  # the tag of its fixed words, as in a report; empty: English
    before: Compared
    after: Compared
    changes: list[Change] = []
    unchanged: int = 0
    unmentioned: int = 0
    unread: list[Statement] = []
    regained: bool = False  # there is a report, and the run right before has none
    sources_new: list[Place] = []  # cited now, not read before
    sources_gone: list[Place] = []  # cited before, not read now

    @property
    def lost(self) -> bool:
        """Whether the later run has no report although the earlier one has."""
        return self.before.answered is not None and self.after.answered is None

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        return bool(self.changes) or self.lost or self.regained

    def of(self, kind: Kind) -> list[Change]:
        """Return the changes of one kind."""
        return [change for change in self.changes if change.kind == kind]
