"""Statements: what the notes quote, ranked by how well it answers a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from fathom.extractive.doubtful import WebSource, doubtful
from fathom.extractive.wording import topic_terms
from fathom.models import Answered, Contradiction, Note, SourceText
from fathom.retrieval.asked import Asked, compares, preferences, read_asked
from fathom.retrieval.ranking import Passage, titled
from fathom.retrieval.relevance import Chosen, Evidence, Found

ANSWERED = 0.54
"""Share of a question's terms, by worth, from which an excerpt may be its answer; see docs/extractive.md."""
SURE, POSSIBLE = 0.7, 0.35  # the same of the best excerpt, from which it passes for the answer, or may be it
AROUND = 0.8  # of the score of a chosen excerpt, from which one that contains it takes its place

ON_QUESTION = 0.4  # share of a question's terms, by worth, from which a contradiction matters to it
LATER = 0.95
"""Factor for each quotation that stands before another in its note: the note was made with the whole text in view."""


class Statement(NamedTuple):
    """A quotation from a note, as Markdown: sentences, rows, items or code that belong together, and its sources."""

    text: str
    sources: tuple[str, ...]
    title: str
    note: int
    order: int  # in its note, the best first
    date: str = ""  # of its latest source, if that says it: YYYY-MM-DD or YYYY-MM
    page: WebSource | None = None  # its only source, if that is a page of the web


def statements_of(notes: Sequence[Note], passages: Sequence[SourceText] = ()) -> list[Statement]:
    """Return what the notes quote, note by note; texts of their sources tell which of them are pages of the web."""
    pages = {text.source_id: WebSource.of(text) for text in passages}
    return [
        Statement(
            text,
            sources,
            " ".join(note.titles.get(source, "") for source in sources),
            number,
            order,
            max(note.dates.get(source, "") for source in sources),
            pages.get(sources[0]) if len(sources) == 1 else None,
        )
        for number, note in enumerate(notes)
        for order, (text, sources) in enumerate(note.quotations())
    ]


class Quotations:
    """What can be quoted, as evidence for questions: the statements of notes, or whole texts of sources."""

    def __init__(
        self,
        passages: Sequence[Passage],
        sources: Sequence[tuple[str, ...]],
        orders: Sequence[int],
        dates: Sequence[str],
        pages: Sequence[WebSource | None],
    ) -> None:
        self.sources = sources
        self.dates = dates  # YYYY-MM-DD or YYYY-MM of local documents that state one, else empty
        self.titles = [passage.title for passage in passages]
        self._orders = orders
        self._pages = pages
        self._evidence = Evidence(passages)

    @classmethod
    def of_notes(cls, notes: Sequence[Note], passages: Sequence[SourceText] = ()) -> Self:
        """Return what the notes quote."""
        return cls.of_statements(statements_of(notes, passages))

    @classmethod
    def of_statements(cls, statements: Sequence[Statement]) -> Self:
        """Return statements, the same one only once."""
        unique = list({(s.text, s.sources): s for s in statements}.values())
        return cls(
            [Passage(s.text, s.title) for s in unique],
            [s.sources for s in unique],
            [s.order for s in unique],
            [s.date for s in unique],
            [s.page for s in unique],
        )

    @classmethod
    def of_texts(cls, texts: Sequence[SourceText]) -> Self:
        """Return all that some texts say."""
        dates = [text.published if text.kind == "document" else "" for text in texts]
        sources = [(text.source_id,) for text in texts]
        return cls(
            [titled(text) for text in texts], sources, [0] * len(texts), dates, [WebSource.of(text) for text in texts]
        )

    def rank(self, question: str) -> list[Found]:
        """Return the excerpts that bear on a question, the best first; of doubtful pages only if no others do."""
        asked = asked_by(question)
        found = self._evidence.rank(asked)
        avoided = doubtful(question, self._pages)
        trusted = [each for each in found if each.text not in avoided]
        preferred = preferences(question, self.dates)
        weighed = [
            each._replace(score=round(each.score * LATER ** self._orders[each.text] * preferred[each.text], 9))
            for each in trusted or found
        ]
        return sorted(weighed, key=lambda each: -each.score)

    def choose(self, found: Sequence[Found], question: str, max_tokens: int) -> list[Chosen]:
        """Return the best excerpts that fit together."""
        return self._evidence.choose(found, asked_by(question), max_tokens, around=AROUND)

    def markdown(self, found: Found, question: str) -> str:
        """Return an excerpt as Markdown."""
        return self._evidence.markdown(found, asked_by(question))

    def text(self, found: Found) -> str:
        """Return the whole statement or text that an excerpt is of."""
        return self.whole(found.text)

    def whole(self, number: int) -> str:
        """Return a statement or text by its number."""
        return self._evidence.passages[number].text

    def says(self, found: Found) -> str:
        """Return the words of an excerpt, without its lead-in."""
        return self._evidence.says(found)

    def share(self, question: str) -> float:
        """Return the largest share of a question's terms, by worth, that one excerpt holds."""
        return max((found.share for found in self.rank(question)), default=0.0)

    def answer(self, question: str) -> Answered:
        """Return whether an excerpt passes for the answer."""
        return self.answered_by(self.rank(question), question)

    def answered_by(self, found: Iterable[Found], question: str) -> Answered:
        """Return whether one of the excerpts, the best first, passes for the answer, or may be it.

        It passes if the best one holds nearly all that is asked for, and the question compares nothing. It may be the
        answer if it has the kind of thing that is asked for. Doubtful pages answer nothing, and where nothing at all
        has the attribute that is asked of something, nothing does.
        """
        asked = asked_by(question)
        avoided = doubtful(question, self._pages)
        trusted = [each for each in found if each.text not in avoided]
        if not trusted or (asked.attribute and not self._evidence.has(asked.attribute, asked)):
            return Answered.no
        best = max((each.share for each in trusted if self._evidence.answers(each, asked)), default=0.0)
        if best >= ANSWERED:
            return Answered.yes if trusted[0].share >= SURE and not compares(question) else Answered.maybe
        possible = trusted[0].share >= POSSIBLE and self._evidence.answers(trusted[0], asked)
        return Answered.maybe if possible else Answered.no


def asked_by(question: str) -> Asked:
    """Return what a question asks for, without the words of asking."""
    return read_asked(question, topic=topic_terms(question))


def on_question(query: str, notes: Sequence[Note], found: Sequence[Contradiction]) -> list[Contradiction]:
    """Return the contradictions that hold enough of the question to matter to its answer."""
    if not found:
        return []
    said = [f"{each.claim_a} {each.claim_b}" for each in found]
    told = [Statement(text, (), "", number, 0) for number, text in enumerate(said)]
    quotations = Quotations.of_statements([*told, *statements_of(notes)])
    near = {quotations.text(each) for each in quotations.rank(query) if each.share >= ON_QUESTION}
    return [each for each, text in zip(found, said, strict=True) if text in near]


def quotations_for(notes: Sequence[Note], passages: Sequence[SourceText]) -> Quotations:
    """Return what may be quoted in an answer: all that the notes' sources say, or what the notes quote of them."""
    return Quotations.of_texts(passages) if passages else Quotations.of_notes(notes)
