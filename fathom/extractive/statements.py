"""Statements: what the notes quote, ranked by how well it answers a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fathom.extractive.wording import topic_terms
from fathom.models import Note
from fathom.retrieval.ranking import Passage
from fathom.retrieval.relevance import Asked, Chosen, Evidence, Found, read_asked

ANSWERED = 0.55
"""Share of a question's terms, by worth, from which an excerpt passes for its answer; see docs/extractive.md."""

LATER = 0.95
"""Factor for each quotation that stands before another in its note: the note was made with the whole text in view."""


class Statement(NamedTuple):
    """A quotation from a note, as Markdown: sentences, rows, items or code that belong together, and its sources."""

    text: str
    sources: tuple[str, ...]
    title: str
    note: int
    order: int  # in its note, the best first


def statements_of(notes: Sequence[Note]) -> list[Statement]:
    """Return what the notes quote, note by note."""
    return [
        Statement(text, sources, " ".join(note.titles.get(source, "") for source in sources), number, order)
        for number, note in enumerate(notes)
        for order, (text, sources) in enumerate(note.quotations())
    ]


class Quotations:
    """Statements as evidence for questions."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = list({(s.text, s.sources): s for s in statements}.values())
        self._evidence = Evidence([Passage(s.text, s.title) for s in self.statements])

    def rank(self, question: str) -> list[Found]:
        """Return the excerpts of the statements that bear on a question, the best first."""
        found = self._evidence.rank(asked_by(question))
        weighed = [f._replace(score=round(f.score * LATER ** self.statements[f.text].order, 9)) for f in found]
        return sorted(weighed, key=lambda each: -each.score)

    def choose(self, found: Sequence[Found], question: str, max_tokens: int) -> list[Chosen]:
        """Return the best excerpts that fit together."""
        return self._evidence.choose(found, asked_by(question), max_tokens)

    def markdown(self, found: Found, question: str) -> str:
        """Return an excerpt as Markdown."""
        return self._evidence.markdown(found, asked_by(question))

    def says(self, found: Found) -> str:
        """Return the words of an excerpt, without its lead-in."""
        return self._evidence.says(found)

    def share(self, question: str) -> float:
        """Return the largest share of a question's terms, by worth, that one excerpt holds."""
        return max((found.share for found in self.rank(question)), default=0.0)


def asked_by(question: str) -> Asked:
    """Return what a question asks for, without the words of asking."""
    return read_asked(question, topic=topic_terms(question))
