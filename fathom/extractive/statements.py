"""Statements: what the notes quote, ranked by how well it answers a question, and the one that a later one replaces.

Excerpts of which a later one replaces an earlier one, or two give different numbers: the reader gets both. Only
documents that state their dates replace each other. Without dates, nothing says which of two numbers holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple, Self

from fathom.contradictions.succession import ReadStatement, differing, readings, replaced_documents, replaces
from fathom.extractive.citing import Quoted, Superseded
from fathom.extractive.dated import dated_sections
from fathom.extractive.questions import bound_of, is_verb, topic_terms
from fathom.facts.extraction import facts_of
from fathom.models import Answered, Contradiction, Note, SourceText
from fathom.retrieval.asked import (
    QuestionTerms,
    asks_definition,
    asks_for_newest,
    asks_for_steps,
    asks_to_relate,
    compares,
    deed_of,
    preferences,
    read_asked,
    times_of,
)
from fathom.retrieval.kinds import has_kind, kind_of
from fathom.retrieval.meaning import by_meaning, judged
from fathom.retrieval.ranking import Passage, titled
from fathom.retrieval.relevance import MOST_RANKED, Chosen, Found, RankedExcerpts, contains
from fathom.sources.signals import is_sensational_title
from fathom.text.messages import is_quotation
from fathom.text.tables import cells_of_row, joined_tables
from fathom.text.terms import STOP_WORDS, terms

ANSWERED = 0.54
"""Share of a question's terms, by worth, from which an excerpt may be its answer; see docs/extractive.md."""
SURE = 0.7  # the same of the best excerpt, from which it passes for the answer
TOGETHER = 0.65  # the same of one line, where it is asked how something is done or whether it is so
IN_ONE_LINE = 0.5  # the same of one line of several, where it is asked for anything else
CERTAIN = 0.8  # the same of one line, from which what says less beside it is left out
AROUND_STEP = 0.3  # the same where the steps of something are asked for: one step alone is no answer
AROUND = 0.9  # of the score of a chosen excerpt, from which one that contains it takes its place

ON_QUESTION = 0.4  # share of a question's terms, by worth, from which a contradiction matters to it
CONSIDERED = 12  # best excerpts of which one must answer the question: the others are not quoted
LATER = 0.95
"""Factor for each quotation that stands before another in its note: the note was made with the whole text in view."""
SUPERSEDED = 0.5  # factor for a document that a later edition replaces, and for rows of which a later one has others
SAID_EARLIER = 0.8  # factor for what a mail quotes: its own words on the same matter are read first
NO_STEP = 0.5
"""Factor for one value of a file of settings or data where it is asked how something is done."""
_VALUE = re.compile(r"\W*[^\s:]*(?:\w\.|\])[^\s:]*: ")  # "server.ports[0]: 80"


class QuotedStatement(NamedTuple):
    """A quotation from a note, as Markdown: sentences, rows, items or code that belong together, and its sources."""

    text: str
    sources: tuple[str, ...]
    title: str
    note: int
    order: int  # in its note, the best first
    date: str = ""  # of its latest source, if that says it: YYYY-MM-DD or YYYY-MM
    page: WebSource | None = None  # its only source, if that is a page of the web


def statements_of(notes: Sequence[Note], passages: Sequence[SourceText] = ()) -> list[QuotedStatement]:
    """Return what the notes quote, note by note; texts of their sources tell which of them are pages of the web."""
    pages = {text.source_id: WebSource.of(text) for text in passages}
    return [
        QuotedStatement(
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


class Quotable(NamedTuple):
    """A statement or text with what is known of it."""

    passage: Passage
    sources: tuple[str, ...]
    name: str  # the title of its source as a reader knows it
    order: int = 0  # in its note
    date: str = ""  # YYYY-MM-DD or YYYY-MM, of a local document that states one
    page: WebSource | None = None
    heading: str = ""  # with its date, of a section of a document
    subject: str = ""  # of its mail
    edition: SourceText | None = None  # a later one of its document, which replaces it


class Quotations:
    """What can be quoted, as evidence for questions: the statements of notes, or whole texts of sources."""

    def __init__(self, texts: Sequence[Quotable]) -> None:
        self.sources = [text.sources for text in texts]
        self.names = [text.name for text in texts]
        self.subjects = [text.subject or text.name for text in texts]
        self.headings = [text.heading for text in texts]
        self.dates = [text.date for text in texts]
        self.titles = [text.passage.title for text in texts]
        self._orders = [text.order for text in texts]
        self.editions = [text.edition for text in texts]
        self._pages = [text.page for text in texts]
        self._evidence = RankedExcerpts([text.passage for text in texts])

    @classmethod
    def of_notes(cls, notes: Sequence[Note], passages: Sequence[SourceText] = ()) -> Self:
        """Return what the notes quote."""
        return cls.of_statements(statements_of(notes, passages))

    @classmethod
    def of_statements(cls, statements: Sequence[QuotedStatement]) -> Self:
        """Return statements, the same one only once."""
        unique = {(s.text, s.sources): s for s in statements}.values()
        return cls([Quotable(Passage(s.text, s.title), s.sources, s.title, s.order, s.date, s.page) for s in unique])

    @classmethod
    def of_texts(cls, texts: Sequence[SourceText]) -> Self:
        """Return all that some texts say; of a document with dated sections, each section with its date."""
        editions = replaced_documents(texts)
        return cls(
            [
                Quotable(
                    titled(text)._replace(text=part.text),
                    (text.source_id,),
                    text.title,
                    date=part.date,
                    page=WebSource.of(text),
                    heading=part.heading,
                    subject=part.subject,
                    edition=editions.get(text.source_id),
                )
                for text in texts
                for part in dated_sections(text)
            ]
        )

    def rank(self, question: str) -> list[Found]:
        """Return the excerpts that bear on a question, the best first; of doubtful pages only if no others do."""
        found = by_meaning(self._evidence.rank(asked_by(question)), question, self._evidence)
        avoided = doubtful(question, self._pages)
        trusted = [each for each in found if each.text not in avoided]
        preferred, steps = preferences(question, self.dates), asks_for_steps(question)
        newest = not times_of(question)
        weighed = []
        for each in trusted or found:
            factor = LATER ** self._orders[each.text] * preferred[each.text]
            factor *= SAID_EARLIER if is_quotation(self.headings[each.text]) else 1.0
            factor *= SUPERSEDED if newest and self.editions[each.text] else 1.0
            factor *= NO_STEP if steps and _VALUE.match(self.says(each)) else 1.0
            weighed.append(each._replace(score=round(each.score * factor, 9)))
        return sorted(weighed, key=lambda each: -each.score)

    def choose(self, found: Sequence[Found], question: str, max_tokens: int, most: int = MOST_RANKED) -> list[Chosen]:
        """Return the best excerpts that fit together, at most `most`."""
        listed, asked = asks_list(question), asked_by(question)
        around = AROUND_STEP if listed or asks_for_steps(question) else AROUND
        return self._evidence.choose(found, asked, max_tokens, around=around, most=most, one_row=not listed)

    def markdown(self, found: Found, question: str) -> str:
        """Return an excerpt as Markdown."""
        return self._evidence.markdown(found, asked_by(question))

    def worth(self, question: str) -> Mapping[frozenset[str], float]:
        """Return what each of a question's terms is worth here, by all words that texts use for it."""
        return self._evidence.worth(asked_by(question))

    def whole(self, number: int) -> str:
        """Return a statement or text by its number."""
        return self._evidence.passages[number].text

    def texts(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return the titles of all statements or texts, and what each says."""
        return self.titles, [self.whole(number) for number in range(len(self.titles))]

    def joined(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return the titles of all sources, and what is known of each: a note may quote a table in several pieces."""
        known: dict[tuple[str, ...], list[int]] = {}
        for number, sources in enumerate(self.sources):
            known.setdefault(sources, []).append(number)
        return [self.titles[numbers[0]] for numbers in known.values()], [
            joined_tables([self.whole(number) for number in numbers]) for numbers in known.values()
        ]

    def says(self, found: Found) -> str:
        """Return the words of an excerpt, without its lead-in."""
        return self._evidence.says(found)

    def sentences(self, found: Found) -> list[str]:
        """Return the sentences, rows or items of an excerpt, without its lead-in."""
        return self._evidence.sentences(found)

    def above(self, found: Found) -> tuple[str, str]:
        """Return the heading above an excerpt, empty without one, and the title of its text."""
        return self._evidence.heading(found), self.titles[found.text]

    def share(self, question: str) -> float:
        """Return the largest share of a question's terms, by worth, that one excerpt holds."""
        return max((found.share for found in self.rank(question)), default=0.0)

    def answer(self, question: str) -> Answered:
        """Return whether an excerpt passes for the answer."""
        return judged(lambda: self.answered_by(self.rank(question), question))

    def answered_by(self, found: Iterable[Found], question: str) -> Answered:
        """Return whether one of the excerpts, the best first, passes for the answer, or may be it.

        It passes if the best one holds nearly all that is asked for, with the thing and the year, and the question
        compares nothing, or if a definition is asked for and the best one opens with it. It may be the answer if it has
        the kind of thing that is asked for. Doubtful pages answer nothing, nothing answers a question that names no
        thing, and where nothing at all has the attribute that is asked of something, nothing does. What a mail quotes
        only may be the answer: its sender may have said something else since.
        """
        asked = asked_by(question)
        avoided = doubtful(question, self._pages)
        trusted = [each for each in found if each.text not in avoided]
        if not trusted or not asked.has_topic or (asked.attribute and not self._evidence.has(asked.attribute, asked)):
            return Answered.no
        if any(each.share >= ANSWERED and self._evidence.answers(each, asked) for each in trusted[:CONSIDERED]):
            if is_quotation(self.headings[trusted[0].text]) or self.editions[trusted[0].text]:
                return Answered.maybe
            defined = asks_definition(question) and self._evidence.defines(trusted[0], asked)
            return Answered.yes if defined or self._tells(trusted[0], question) else Answered.maybe
        possible = trusted[0].share >= asked.least_share and self._evidence.answers(trusted[0], asked)
        return Answered.maybe if possible else Answered.no

    def is_certain(self, found: Sequence[Found], question: str) -> bool:
        """Whether one of the excerpts, the best first, passes for the answer, and one line of the best one says it.

        A row says it with its header, also where the best one is the whole table.
        """
        if self.answered_by(found, question) is not Answered.yes:
            return False
        within = (each for each in found if contains(found[0], each))
        return any(self._evidence.together(each, asked_by(question)) >= CERTAIN for each in within)

    def states(self, found: Found, question: str) -> bool:
        """Whether an excerpt has the number, date or name that is asked for, or the question asks for none."""
        return self._evidence.answers(found, asked_by(question))

    def share_of(self, found: Found, question: str) -> float:
        """Return the share of a question's terms, by worth, that an excerpt holds: of a row itself, with its header.

        A sentence leans on its page's title, a row does not: beside the price stands no stock of the same product.
        """
        asked = asked_by(question)
        is_row = found.excerpt.kind == "table"
        return self._evidence.together(found, asked, asked.attribute) if is_row else found.share

    def _tells(self, found: Found, question: str) -> bool:
        """Whether an excerpt holds nearly all of a question that one can answer, with its thing and its years."""
        alone = not compares(question) and not bound_of(question) and self._relates(found, question)
        alone = alone and self._tells_who(found, question)
        if max(found.share, self.share_of(found, question)) < SURE or not alone:
            return False
        kind = None if asks_for_steps(question) else kind_of(question)
        says = self.markdown(found, question)
        years = {str(time.year) for time in times_of(question) if time.year}
        dated = years.issubset(terms(" ".join([*self.above(found), self.dates[found.text], says])))
        stated = facts_of(says).undated if kind and kind.is_number else says  # a day of the month counts nothing
        return dated and (kind is None or not kind.is_thing or has_kind(kind, stated, question))

    def _tells_who(self, found: Found, question: str) -> bool:
        """Whether a row has a cell or column for whom a question asks who it is: "ask the landlord" names none."""
        if found.excerpt.kind != "table" or not _WHO_IS.match(question):
            return True
        topic = {term for said in asked_by(question).terms.values() for term in said}
        lines = (line for line in self.markdown(found, question).split("\n") if line.startswith("|"))
        cells = ({*terms(cell)} for line in lines for cell in cells_of_row(line))
        return any(cell & topic and cell <= {*topic, *terms(question)} for cell in cells)

    def _relates(self, found: Found, question: str) -> bool:
        """Whether one line says half of a question, or most of one whose words belong together, with what is done."""
        if asks_to_relate(question):
            return self._evidence.together(found, asked_by(question), deed_of(question)) >= TOGETHER
        is_line = len(found.excerpt.units) == 1 or found.excerpt.kind == "table"
        return is_line or self._evidence.together(found, asked_by(question)) >= IN_ONE_LINE


@lru_cache(maxsize=64)  # each excerpt that is chosen or judged asks for it again
def asked_by(question: str) -> QuestionTerms:
    """Return what a question asks for, without the words of asking."""
    return read_asked(question, topic=topic_terms(question))


_WHO_IS = re.compile(r"\W*(?:who(?: is|['’]s| was)|wer (?:ist|war)) (?:the|our|my|der|die|unsere?) ", re.IGNORECASE)
_THINGS = re.compile(r"\b(?:what|which)((?: [\w-]+){1,5})|\A\W*(?:name|list)\b((?: [\w-]+){1,5})", re.IGNORECASE)
_CONTENT = re.compile(
    r"\bwhat (?:(?:has|have|needs?) to be (?:in|on)\b|"
    r"(?:should|must|does|do|has|have)\b.*\b(?:give|contain|include|consist)\b)",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"\w{2,}[^su\W]s\Z")


def asks_list(question: str) -> bool:
    """Whether a question asks for several things: "which packages", "what are the steps", "what must it include"."""
    if _CONTENT.search(question):
        return True
    runs = ((asked[1] or asked[2]).lower().split() for asked in _THINGS.finditer(question))
    beginnings = (takewhile(lambda word: word in ("are", "were") or not is_verb(word), words) for words in runs)
    return any(_PLURAL.match(word) and word not in STOP_WORDS for words in beginnings for word in words)


def on_question(query: str, notes: Sequence[Note], found: Sequence[Contradiction]) -> list[Contradiction]:
    """Return the contradictions that hold enough of the question to matter to its answer."""
    if not found:
        return []
    said = [f"{each.claim_a} {each.claim_b}" for each in found]
    told = [QuotedStatement(text, (), "", number, 0) for number, text in enumerate(said)]
    quotations = Quotations.of_statements([*told, *statements_of(notes)])
    near = {quotations.whole(each.text) for each in quotations.rank(query) if each.share >= ON_QUESTION}
    return [each for each, text in zip(found, said, strict=True) if text in near]


def quotations_for(notes: Sequence[Note], passages: Sequence[SourceText]) -> Quotations:
    """Return what may be quoted in an answer: all that the notes' sources say, or what the notes quote of them."""
    return Quotations.of_texts(passages) if passages else Quotations.of_notes(notes)


COMPARED = 40  # best excerpts of a question that are compared
BESIDE = 2  # other excerpts that are shown with the chosen ones of a question


_BLOCKS = re.compile(r"\n\n|\n(?=[-*+] )")  # between paragraphs, and before an item


def _joined(blocks: Sequence[str]) -> str:
    """Return paragraphs and items as one text."""
    text = ""
    for before, block in zip(["", *blocks], blocks, strict=False):
        apart = "\n" if block[:2] == before[:2] in ("- ", "* ", "+ ") else "\n\n"
        text += f"{apart if text else ''}{block}"
    return text


class Succession:
    """The excerpts that bear on a question; what replaces one of the best stands before it.

    Not where the question names a time: what held then is asked.
    """

    def __init__(self, quotations: Quotations, question: str) -> None:
        self._quotations = quotations
        self._newest = not times_of(question)
        self.found = quotations.rank(question)
        best: dict[Quoted, list[Found]] = {}  # some excerpts differ only in what counts as their lead-in
        for each in self.found[:COMPARED]:
            best.setdefault(Quoted(each.text, quotations.markdown(each, question)), []).append(each)
        self._compared = list(best)
        if self._newest and (order := self._in_order(self._compared)) != self._compared:
            moved = [each for quoted in order for each in best[quoted]]
            scores = [each.score for each in self.found]
            self.found = [
                each._replace(score=s, before=each.score)
                for each, s in zip([*moved, *self.found[COMPARED:]], scores, strict=True)
            ]
            self._compared = order

    def instead(self, quoted: Quoted) -> Quoted | None:
        """Return the newest excerpt that replaces another, unless what held earlier is asked."""
        successors = list(self._successors(quoted)) if self._newest else []
        if not successors:
            return None
        number, reading = max(successors, key=lambda one: self._quotations.dates[one[0]])
        holding = [each for each in self._compared if each.number == number and reading in self._readings(each)]
        return min(holding, key=lambda each: len(self._readings(each)))

    def shown(self, chosen: Iterable[Chosen]) -> list[Quoted]:
        """Return chosen excerpts, and behind each the best ones that it replaces or that give other numbers."""
        taken = [Quoted(each.text, each.markdown) for each in chosen]
        shown: list[Quoted] = []
        left = BESIDE
        for each in taken:
            shown.append(each)
            for other in sorted(self._compared, key=lambda one: len(self._readings(one))):
                if left and self._conflict(each, other, [*taken, *shown]):
                    shown.append(other)
                    left -= 1
        return self.marked(self._in_order(shown) if self._newest else shown)

    def marked(self, excerpts: Iterable[Quoted]) -> list[Quoted]:
        """Return excerpts, and behind all that holds what does not any more, marked with what replaced it, and when.

        Of a list or of several paragraphs, only what something else replaces is marked. Where the question names a
        time, they keep their order.
        """
        marked: list[Quoted] = []
        for each in excerpts:
            if newer := self._quotations.editions[each.number]:
                marked.append(each._replace(superseded=Superseded(newer.published, newer.title, in_part=False)))
                continue
            if not (successors := list(self._successors(each))):
                marked.append(each)
                continue
            date, first = min((self._quotations.dates[number], number) for number, _ in successors)
            holds, replaced = self._parted(each, [reading for _, reading in successors])
            marked += [each._replace(markdown=holds)] if holds else []
            in_part = len(self._readings(each._replace(markdown=replaced))) > 1
            marked.append(Quoted(each.number, replaced, Superseded(date, self._quotations.names[first], in_part)))
        return sorted(marked, key=lambda each: bool(each.superseded)) if self._newest else marked

    def _parted(self, quoted: Quoted, successors: Sequence[ReadStatement]) -> tuple[str, str]:
        """Return what of an excerpt holds, empty if that cannot be told apart, and what is replaced."""
        old = {one.text for one in self._readings(quoted) if any(replaces(new, one) for new in successors)}
        blocks = _BLOCKS.split(quoted.markdown)
        said = [{one.text for one in self._readings(quoted._replace(markdown=block))} for block in blocks]
        whole = "|" in quoted.markdown or "```" in quoted.markdown
        if whole or len(blocks) < 2 or not old.issubset(set[str]().union(*said)):
            return "", quoted.markdown
        holds = [block for block, own in zip(blocks, said, strict=True) if not own & old]
        if all(block.rstrip().endswith(":") for block in holds):
            return "", quoted.markdown
        return _joined(holds), _joined([block for block, own in zip(blocks, said, strict=True) if own & old])

    def _readings(self, quoted: Quoted) -> Sequence[ReadStatement]:
        known = self._quotations
        number = quoted.number
        return readings(quoted.markdown, known.titles[number], known.dates[number], known.subjects[number])

    def _in_order(self, excerpts: Sequence[Quoted]) -> list[Quoted]:
        """Return excerpts, each behind those that replace it."""
        ordered = list(excerpts)
        for old in excerpts:
            successors = list(self._successors(old))
            for new in ordered[ordered.index(old) + 1 :] if successors else ():
                own = self._readings(new)
                if any(new.number == number and reading in own for number, reading in successors):
                    ordered.remove(new)
                    ordered.insert(ordered.index(old), new)
        return ordered

    def _successors(self, quoted: Quoted) -> Iterator[tuple[int, ReadStatement]]:
        """Yield what later excerpts say instead of something that an excerpt says, with the numbers of their texts."""
        own = self._readings(quoted)
        for other in self._compared:
            if self._is_later(other.number, quoted.number):
                new = (reading for reading in self._readings(other) if any(replaces(reading, old) for old in own))
                yield from ((other.number, reading) for reading in new)

    def _conflict(self, quoted: Quoted, other: Quoted, shown: Sequence[Quoted]) -> bool:
        """Whether another excerpt says what one replaces, or gives other numbers, and is not yet shown."""
        first, second = (self._quotations.sources[each.number] for each in (quoted, other))
        later = self._is_later(quoted.number, other.number)
        if (set(first) & set(second) and not later) or self._is_later(other.number, quoted.number):
            return False
        against = replaces if later else differing
        mine = self._readings(quoted)
        theirs = self._readings(other)
        same = (each for each in shown if self._quotations.sources[each.number] == second)
        said = {reading.text for each in same for reading in self._readings(each)}
        new = said.isdisjoint(reading.text for reading in theirs)
        return new and any(against(own, their) for own in mine for their in theirs)

    def _is_later(self, number: int, other: int) -> bool:
        """Whether both texts state their dates, and that of the first is later as far as both say it."""
        new, old = self._quotations.dates[number], self._quotations.dates[other]
        known = min(len(new), len(old))
        return new[:known] > old[:known]


OLD_YEARS = 3  # that a page is older than the newest one

_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


class WebSource(NamedTuple):
    """What may make a page of the web doubtful. Documents are never: a user chose them."""

    title: str
    published: str  # as the search service writes it

    @classmethod
    def of(cls, text: SourceText) -> WebSource | None:
        """Return that of a text; None if it is not from the web."""
        return cls(text.title, text.published) if text.kind == "web" else None


def doubtful(question: str, pages: Sequence[WebSource | None]) -> set[int]:
    """Return the numbers of the doubtful pages."""
    web = {number: page for number, page in enumerate(pages) if page}
    years = {number: int(found[0]) for number, page in web.items() if (found := _YEAR.search(page.published))}
    newest = max(years.values(), default=0) if asks_for_newest(question) else 0
    old = {number for number, year in years.items() if newest - year >= OLD_YEARS}
    return old | {number for number, page in web.items() if is_sensational_title(page.title)}
