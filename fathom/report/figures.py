"""Tables, timelines and charts that a report's claims fill.

Nothing is added to the claims: a comparison sorts them by the side they are about, a timeline by the dates of their
events, and a series draws a column of numbers by year from a table of the report. Claims to which the check objects, or
that another source disputes, are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from fathom.evidence.claims import is_head
from fathom.extractive.questions import capitalized, sides_of
from fathom.facts.dates import Date, DateFound
from fathom.facts.extraction import facts_of
from fathom.models import Claim, Corroboration, Phase, Report
from fathom.text.citations import without_citations
from fathom.text.sentences import split_markdown
from fathom.text.tables import BAR, is_omission
from fathom.text.terms import query_terms, terms
from fathom.text.wording import Wording, wording

LEAST_EVENTS = 3
LEAST_YEARS = 3
LEAST_A_SIDE = 2
LEAST_WORDS = 2  # of a row that dates an event
SAME = 0.6  # share of the shorter sentence's words from which two sentences describe the same event
LEAST_TERMS = 4  # of a sentence that says something about its first one
MOST_ROWS = 6
MOST_EVENTS = 20
_EVENTS = re.compile(
    r"\b(?:when (?:was|were|did|is|are|will)|history|timeline|chronolog\w+|evolution|evolve\w*|milestones?|"
    r"development of|over the years|how (?:did|has|have|was|were)\b.{1,120}\b(?:develop|evolve|emerge|come about|"
    r"originate|begin)|wann|geschichte|chronik|entwicklung|entwickelt|historia|histoire)\b",
    re.IGNORECASE,
)
# What stands before the date of an event ...
_AT = re.compile(
    r"\b(?:(?:in|on|since|by|from|at|during|im|am|in|seit|ab|vom|en|le|el|em|depuis|dès|desde)(?:\s+(?:the|den|dem))?"
    r"|\w+ed)(?:\s+(?:early|late|mid|about|around|spring|summer|autumn|fall|winter|anfang|mitte|ende))*[\s-]*\Z",
    re.IGNORECASE,
)
_WITHIN = re.compile(r"\(([^()]*)\Z")
# ... and what makes it the year of a publication: "(Holm, 2008)".
_AUTHOR = re.compile(r"[A-Z][\w.-]+(?: [A-Z][\w.-]+| et al\.?| and [A-Z][\w.-]+| & [A-Z][\w.-]+)*,? *\Z")
_STOP = re.compile(r"\s*[:,–—]|\s+-\s")
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d\Z")
_FIGURE = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?\Z")


class ClaimCell(NamedTuple):
    """A text, and the claim that it is; None for a name or a date."""

    text: str
    claim: Claim | None = None


class ClaimTable(NamedTuple):
    """A table of claims."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[ClaimCell, ...]]


def figures_of(report: Report) -> list[ClaimTable]:
    """Return the tables that the claims of a report fill: a comparison and a timeline."""
    claims = [claim for claim in report.claims if _holds(claim)]
    return [*_comparison(report, claims), *_timeline(report, claims)]


def series_of(report: Report) -> list[Chart]:
    """Return a chart for each table of the report that gives numbers by year, of its first column of numbers.

    Each row must be a claim that holds.
    """
    held = {claim.sentence for claim in report.claims if _holds(claim)}
    tables = (table for section in report.sections for table in _tables(section.markdown))
    return [chart for table in tables if held.issuperset(map(_claimed, table[1:])) for chart in _series(table)]


def _claimed(row: Sequence[str]) -> str:
    return " | ".join(filter(None, row))


def _holds(claim: Claim) -> bool:
    return not claim.verdict.objects and claim.corroboration is not Corroboration.contradicted


def _comparison(report: Report, claims: Sequence[Claim]) -> Iterator[ClaimTable]:
    sides = sides_of(report.query)
    if not sides or any(_has_table_of(section.markdown, sides[0]) for section in report.sections):
        return
    one, other = (set(terms(side)) for side in sides)
    mine, yours = one - other, other - one
    left: list[Claim] = []
    right: list[Claim] = []
    for claim in claims:
        about = query_terms(claim.sentence)
        if len(about) < LEAST_TERMS or " | " in claim.sentence:
            continue
        if about[0] in mine and not yours & set(about):
            left.append(claim)
        elif about[0] in yours and not mine & set(about):
            right.append(claim)
    if min(len(left), len(right)) >= LEAST_A_SIDE:
        ordered = _paired(left, right)[:MOST_ROWS]
        rows = [
            tuple(ClaimCell(claim.sentence, claim) if claim else ClaimCell("") for claim in pair) for pair in ordered
        ]
        yield ClaimTable(wording(report.language)("Side by side"), (capitalized(sides[0]), capitalized(sides[1])), rows)


def _paired(left: Sequence[Claim], right: Sequence[Claim]) -> list[tuple[Claim | None, Claim | None]]:
    """Put claims beside the claims that share the most words with them."""
    rest = list(right)
    pairs: list[tuple[Claim | None, Claim | None]] = []
    alone: list[Claim] = []
    for claim in left:
        about = set(query_terms(claim.sentence))
        near = max(rest, key=lambda other: len(about & set(query_terms(other.sentence))), default=None)
        if near and about & set(query_terms(near.sentence)):
            pairs.append((claim, near))
            rest.remove(near)
        else:
            alone.append(claim)
    return [*pairs, *zip_longest(alone, rest)]


def _timeline(report: Report, claims: Sequence[Claim]) -> Iterator[ClaimTable]:
    if not _EVENTS.search(report.query):
        return
    events = _told_once([event for claim in claims if (event := _event(claim))])
    dated = sum(_is_dated(row) for section in report.sections for table in _tables(section.markdown) for row in table)
    if len({event.day for event in events}) < LEAST_EVENTS or dated >= len(events):
        return
    shown = events
    if len(events) > MOST_EVENTS:  # the events closest to the answer
        about = {*query_terms(report.query), *query_terms(without_citations(report.sections[0].markdown))}
        shown = sorted(events, key=lambda event: -len(event.about & about) / (len(event.about) or 1))[:MOST_EVENTS]
    words = wording(report.language)
    rows = [
        (
            ClaimCell(
                words.day(event.day.year, event.day.month, event.day.day) if event.day.month else str(event.day.year)
            ),
            ClaimCell(event.claim.sentence, event.claim),
        )
        for event in sorted(shown, key=lambda event: (event.day, event.claim.number))
    ]
    if more := len(events) - len(shown):
        rows.append(
            (
                ClaimCell(words("Besides")),
                ClaimCell(words("{events} in the sections", events=words.counted(more, "more dated event"))),
            )
        )
    yield ClaimTable(words("Timeline"), (words("When"), words("What")), [*rows])


class _Event(NamedTuple):
    """An event that a claim states, with its date; `about` holds its words of topic."""

    day: Date
    claim: Claim
    about: frozenset[str]


def _event(claim: Claim) -> _Event | None:
    """Return the first event that a sentence dates; None if its dates belong to no event: "the law of 1999"."""
    facts = facts_of(claim.sentence)
    days = [found.date for found in facts.dates if found.date.year and _dates_event(facts.text, found)]
    if not days or " | " in claim.sentence:
        return None
    return _Event(min(days), claim, frozenset(query_terms(facts.undated)))


def _dates_event(text: str, found: DateFound) -> bool:
    """Whether a date is the date of an event: it follows a word such as "in", or stands before a stop or apart."""
    before, after = text[: found.start], text[found.end :]
    if within := _WITHIN.search(before):
        return not _AUTHOR.match(within[1])
    opens = not re.search(r"\w", before) and bool(_STOP.match(after))
    return opens or bool(_AT.search(before)) or not found.text.isascii()


def _told_once(events: Sequence[_Event]) -> list[_Event]:
    """Leave out events that another sentence states too: the more exact date stays, then the shorter sentence."""
    kept: list[_Event] = []
    for event in sorted(events, key=lambda event: (event.day.count(0), len(event.claim.sentence))):
        if not any(event.day.agrees(other.day) and _alike(event.about, other.about) for other in kept):
            kept.append(event)
    return kept


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= SAME * min(len(one), len(other))


def _is_dated(row: Sequence[str]) -> bool:
    """Whether a row describes a dated event in words."""
    words = [cell for cell in row if not facts_of(cell).dates]
    return len(words) < len(row) and sum(term.isalpha() for cell in words for term in query_terms(cell)) >= LEAST_WORDS


def _tables(markdown: str) -> Iterator[list[list[str]]]:
    """Yield the tables of a section as rows of cells, the names of the columns first."""
    parts = split_markdown(markdown)
    table: list[list[str]] = []
    for number, part in enumerate(parts):
        if part.kind == "table":
            head = is_head(parts, number)
            if head and table:
                yield table
                table = []
            cells = [cell.strip() for cell in BAR.split(without_citations(part.text).strip().strip("|"))]
            table += [] if is_omission(cells) else [cells]
        elif part.kind != "rule" and table:
            yield table
            table = []
    if table:
        yield table


def _series(table: Sequence[Sequence[str]]) -> Iterator[Chart]:
    head, *rows = table
    if len(rows) < LEAST_YEARS or not all(_YEAR.match(row[0]) for row in rows):
        return
    for column in range(1, len(head)):
        cells = [row[column] if column < len(row) else "" for row in rows]
        if all(_FIGURE.match(cell) for cell in cells):
            values = [float(cell.replace(",", "")) for cell in cells]
            if min(values) >= 0 and max(values) > 0:
                decimals = max(len(cell.partition(".")[2]) for cell in cells)
                named = tuple(zip((row[0] for row in rows), values, strict=True))
                yield Chart(head[column], (head[0], head[column]), named, decimals=decimals)
                return


def _has_table_of(markdown: str, side: str) -> bool:
    about = set(terms(side))
    return any(about & set(terms(" ".join(table[0]))) for table in _tables(markdown))


_LONGEST_BAR = 270  # in units of the drawing, which is 340 wide: the value follows its bar


@dataclass(frozen=True)
class Chart:
    """Horizontal bars that compare rows. `columns` names what is in a row: the label, then one or two values."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, *tuple[float, ...]], ...]
    decimals: int = 0

    def shown(self, value: float) -> str:
        """Return a value as a reader sees it."""
        return f"{value:,.{self.decimals}f}"

    def length(self, value: float) -> str:
        """Return the length of a value's bar, in units of the drawing."""
        return f"{_LONGEST_BAR * value / max(max(row[1:]) for row in self.rows):.1f}"


def report_charts(report: Report) -> list[Chart]:
    """Return the charts of the evidence: by step, and the cited sources by type and by year."""
    steps = tuple((f"{n}. {s.title}", s.useful_notes, s.sources) for n, s in enumerate(report.coverage, 1))
    words = wording(report.language)
    types = Counter(quality.type for quality in report.qualities)
    by_type = tuple((words(kind), number) for kind, number in types.most_common())
    years = Counter(quality.published[:4] for quality in report.qualities if quality.published)
    return _useful(
        Chart(words("Evidence by step"), (words("Step"), words("Useful notes"), words("Sources")), steps),
        Chart(words("Sources by type"), (words("Type"), words("Sources")), by_type),
        Chart(words("Sources by year"), (words("Year"), words("Sources")), tuple(sorted(years.items()))),
    )


def phase_charts(phases: Sequence[Phase], words: Wording) -> list[Chart]:
    """Return the charts of the cost, time and tokens of each phase, as far as they are known."""
    named = [(words.stored(phase.name), phase) for phase in phases]
    costs = tuple((name, phase.cost_usd) for name, phase in named if phase.cost_usd is not None)
    times = tuple((name, phase.seconds) for name, phase in named)
    tokens = tuple((name, phase.tokens) for name, phase in named)
    return _useful(
        Chart(words("Cost by phase, in US dollars"), (words("Phase"), "USD"), costs, decimals=4),
        Chart(words("Time of model calls by phase, in seconds"), (words("Phase"), words("Seconds")), times, decimals=1),
        Chart(words("Tokens by phase"), (words("Phase"), words("Tokens")), tokens),
    )


def _useful(*charts: Chart) -> list[Chart]:
    """Leave out charts that compare nothing."""
    return [chart for chart in charts if len(chart.rows) > 1 and any(any(row[1:]) for row in chart.rows)]
