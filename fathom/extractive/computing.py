"""What of a question can be computed from values that the sources state, without guessing: see `evidence/computed.py`.

A comparison takes one value of each thing: the one that most sources state of it, where they do not disagree.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from fathom.evidence.computed import Operand, Value, difference, is_named, values_of
from fathom.extractive.citing import Quoted
from fathom.extractive.comparisons import FOUNDING, Comparison, comparison_of
from fathom.extractive.questions import families, topic_terms
from fathom.extractive.statements import Quotations
from fathom.extractive.tables import from_records, from_tables
from fathom.facts.dates import find_dates
from fathom.facts.numbers import UNITS
from fathom.retrieval.expansion import quantities_of, stand_ins_of, states
from fathom.retrieval.kinds import kind_of
from fathom.retrieval.relevance import Found
from fathom.text.tables import cells_of_row
from fathom.text.terms import terms

CONSIDERED = 80  # excerpts, for each thing
MOST_UNITS = (3, 1)  # of an excerpt of text, and of a table: longer ones are found by their sentences and rows
NEAR = 0.5  # of the best one's score, from which another value speaks against it
NEARLY_ALL = 0.75  # of a question's words, from which a table is all that is asked for
_HOW_MANY = re.compile(r"\bhow many ([\w-]+)", re.IGNORECASE)
_DATES = frozenset(terms("date datum"))
_OF_TIME = frozenset(terms("year date day month time"))
[_PEOPLE] = terms("people")


class ComputedAnswer(NamedTuple):
    """The computed sentence, if one can be made, with the sources it rests on, and the quotations with its values."""

    sentence: str
    sources: tuple[str, ...]
    quoted: Sequence[Quoted]
    is_all: bool = True  # that is asked, not only a part of it
    is_sure: bool = True  # there are no other values that it should be computed from


class _StatedValue(NamedTuple):
    """A value that an excerpt states of a thing."""

    operand: Operand
    found: Found


def computed_answer(quotations: Quotations, question: str) -> ComputedAnswer | None:
    """Return what can be computed of a question; None if it asks for nothing that is, or the values are not there."""
    if compared := comparison_of(question):
        return _compared(quotations, compared)
    found = from_tables(question, *quotations.texts())
    if not found:
        return _from_records(quotations, question)
    number, made = found
    quoted = [Quoted(number, made.markdown)]
    return ComputedAnswer(made.sentence, quotations.sources[number], quoted, is_all=made.share >= NEARLY_ALL)


def _from_records(quotations: Quotations, question: str) -> ComputedAnswer | None:
    """Return what is computed from like sentences, sections or pages; it may not be all of several pages."""
    made = from_records(question, *quotations.texts())
    if not made:
        return None
    words = ((place, " ".join(place.words.split())) for place in made.places)
    quoted = [
        Quoted(place.text, f"{place.name}:\n\n{said}" if place.name else said if said.endswith(".") else f"- {said}")
        for place, said in words
    ]
    sources = tuple(dict.fromkeys(source for number in made.texts for source in quotations.sources[number]))
    whole = made.share >= NEARLY_ALL
    return ComputedAnswer(made.sentence, sources, quoted, is_all=whole, is_sure=len(sources) == 1)


def _compared(quotations: Quotations, compared: Comparison) -> ComputedAnswer | None:
    a, b = compared.sides
    stated = [_of_side(quotations, compared, side, other) for side, other in ((a, b), (b, a))]
    agreed = [_agreed(quotations, each) for each in stated]
    if not all(agreed):
        return None
    pairs = ((one, other) for one in agreed[0] for other in agreed[1])
    first, second = min(pairs, key=lambda pair: pair[0].found.text != pair[1].found.text)  # of one text, if possible
    sources = tuple(dict.fromkeys(i for each in (first, second) for i in quotations.sources[each.found.text]))
    asked = bool(compared.grade) or compared.differs
    sentence = difference(*_in_order(first.operand, second.operand, compared)) if asked else ""
    if sentence is None:
        return None
    wording = compared.wording
    shown = [
        Quoted(each.found.text, quotations.markdown(each.found, f"{each.operand.name} {wording}"))
        for each in (first, second)
    ]
    return ComputedAnswer(sentence, sources, shown, is_all=all(_is_met(quotations, compared, each) for each in agreed))


def _is_met(quotations: Quotations, compared: Comparison, stated: Sequence[_StatedValue]) -> bool:
    """Whether what states a value has all words that say in what things are compared, or what is measured by them."""
    each = stated[0]
    said = set(terms(" ".join((quotations.markdown(each.found, each.operand.name), *quotations.above(each.found)))))
    words = [term for term in terms(compared.matter) if not quantities_of(term)]
    return all(said & family for family in families(words))


def _in_order(a: Operand, b: Operand, compared: Comparison) -> tuple[Operand, Operand]:
    """Return two values, first the one that has more of what is asked."""
    if not compared.grade:
        return a, b
    greater = not compared.grade.earlier if a.value.is_date else compared.grade.greater
    return (a, b) if (a.value.amount >= b.value.amount) is greater else (b, a)


def stated_of(quotations: Quotations, name: str, asked: str) -> list[Found]:
    """Return the excerpts that state the number or date that is asked of a thing, as most sources do; nothing else."""
    kind = kind_of(asked)
    in_number = bool(kind and kind.needed and kind.pattern.search("7"))
    in_time = bool(kind and kind.needed and not in_number and kind.pattern.search("1987"))
    if not (in_time or in_number or any(quantities_of(term) for term in terms(asked))):
        return []
    wording = " ".join(topic_terms(asked))
    counted = found[1] if (found := _HOW_MANY.search(asked)) else ""
    stated = _stated(quotations, name, "", wording, counted, in_time=in_time)
    return [each.found for each in _agreed(quotations, stated)]


def _of_side(quotations: Quotations, compared: Comparison, side: str, other: str) -> Iterator[_StatedValue]:
    """Yield the values that sentences and rows state of a thing, by its whole name where any has that."""
    found = list(_stated(quotations, side, other, compared.wording, in_time=compared.is_in_time))
    yield from [each for each in found if each.operand.name == side] or found


def _stated(
    quotations: Quotations, side: str, other: str, wording: str, counted: str = "", *, in_time: bool
) -> Iterator[_StatedValue]:
    """Yield the values that sentences and rows state of a thing, the best excerpt first."""
    wanted = _WantedValue(wording, side, counted, in_time=in_time)
    short = " ".join(word for word in side.split() if word not in other.split()) or side  # a row has "Alpine" alone
    known: set[tuple[int, str]] = set()
    for each in quotations.rank(f"{side} {wording} {FOUNDING if wanted.of_founding else ''}")[:CONSIDERED]:
        in_row = each.excerpt.kind == "table"
        if each.excerpt.kind in ("heading", "code") or len(each.excerpt.units) > MOST_UNITS[in_row]:
            continue
        above = [text for text in quotations.above(each) if not _names(other, text, side)]
        for says in quotations.sentences(each):
            if (each.text, says) in known or _names(other, says, side):
                continue
            known.add((each.text, says))
            tried = (side, short, *_row_names(side, quotations.markdown(each, side))) if in_row else (side,)
            name = next((name for name in tried if any(_names(name, text, other) for text in (says, *above))), "")
            if not name:
                continue
            value = wanted.of_row(quotations.markdown(each, side)) if in_row else wanted.of_sentence(says)
            if value:
                yield _StatedValue(Operand(value, name), each)


def _row_names(side: str, row: str) -> Iterator[str]:
    """Yield how a row may name a thing: the "Heron plan" as "Heron" below "Plan", or all its words in another order."""
    cells = list(cells_by_column(row))
    header = {term for column, _ in cells for term in terms(column)}
    yield " ".join(word for word in side.split() if header.isdisjoint(terms(word)))
    yield from [cell for _, cell in cells[:1] if sorted(terms(cell)) == sorted(terms(side))]


def _names(name: str, text: str, other: str) -> bool:
    """Whether a text names a thing, not only another one with a longer name: the "Otter", not the "Otter Mini"."""
    if other and name and is_named(name, other):
        text = re.sub(re.escape(other), " ", text, flags=re.IGNORECASE)
    return bool(name) and is_named(name, text)


class _WantedValue:
    """Which value of a sentence or row is asked for, by the words of what is asked."""

    def __init__(self, wording: str, name: str, counted: str = "", *, in_time: bool) -> None:
        self._in_time = in_time
        self._name = name
        asked = [term for term in terms(wording) if not term.isdigit() and term not in _OF_TIME]
        self._families = families(asked)
        founding = set(terms(FOUNDING))
        self._by_any_date = not _DATES.isdisjoint(terms(wording))  # "who joined earlier", but not "which is older"
        self.of_founding = founding if in_time and founding & set(asked) else set[str]()
        self._quantities = {quantity for term in asked for quantity in stand_ins_of(term)}
        if _PEOPLE in asked:
            self._quantities.add("<people>")
        self._counted = counted
        self._years = {found.date.year for found in find_dates(wording)}

    def of_row(self, markdown: str) -> Value | None:
        """Return the value that a row states in the column of what is asked, or its only one of that kind."""
        cells = list(cells_by_column(markdown))
        if self._in_time:
            dated = [value for _, cell in cells[1:] if (value := self._only(cell))]
            return dated[0] if len(dated) == 1 else None
        valued = [(name, cell, value) for name, cell in cells if (value := self._only(cell))]
        borne = [self._borne(name) for name, _, _ in valued]
        if best := max(borne, default=0):
            return valued[borne.index(best)][2] if borne.count(best) == 1 else None
        measured = [value for _, cell, value in valued if self._is_quantity(cell)]
        return measured[0] if len(measured) == 1 else None

    def of_sentence(self, text: str) -> Value | None:
        """Return the value that a sentence states of what is asked; None if it states none, or several."""
        years = {found.date.year for found in find_dates(text)}
        if self._years and years and not self._years & years:
            return None
        return self._only(text) if self._bears(text) or self._is_quantity(text) else None

    def _bears(self, text: str) -> bool:
        """Whether a text has a word of what is asked, or one in its place."""
        return self._borne(text) > 0

    def _borne(self, text: str) -> int:
        """Return how many words of what is asked a text has, or others in their place."""
        said = set(terms(text))
        founding = bool(said & self.of_founding)
        if self.of_founding and not self._by_any_date:  # a town of 1388 has a census of 2025
            return int(founding)
        return founding + sum(bool(said & family) for family in self._families)

    def _may_count(self, value: Value) -> bool:
        """Whether a value counts what is to be counted, if that is known: no eggs where pairs are."""
        if not self._counted or not value.kind or value.unit.lower() in UNITS or self._is_quantity(value.text):
            return True
        return any(value.kind in family for family in families(terms(self._counted)))

    def _is_quantity(self, text: str) -> bool:
        return not self._in_time and any(states(quantity, text) for quantity in self._quantities)

    def _only(self, text: str) -> Value | None:
        """Return the only value of a text that is of the kind that is asked for."""
        text = re.sub(
            re.escape(self._name), lambda found: " " * len(found[0]), text.replace("|", " "), flags=re.IGNORECASE
        )
        if not self._in_time and text.strip().isdecimal():  # 1180 in a cell is no year where no time is asked for
            return Value(text.strip(), Decimal(text.strip()), "", "")
        values = [value for value in values_of(text) if value.is_date is self._in_time and self._may_count(value)]
        if measured := [value for value in values if self._is_quantity(value.text)]:
            values = measured
        elif self._quantities:  # a number of months is no price
            values = [value for value in values if value.unit.lower() not in UNITS]
        return values[0] if len({value.amount for value in values}) == 1 else None


def cells_by_column(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield the cells of a row with the names of their columns, from a table of a header and that row."""
    rows = [line for line in markdown.split("\n") if line.startswith("|")]
    if len(rows) >= 3:
        header, row = (cells_of_row(line) for line in (rows[0], rows[-1]))
        yield from zip(header, row, strict=False)


def _agreed(quotations: Quotations, stated: Iterator[_StatedValue]) -> list[_StatedValue]:
    """Return where the value stands that most sources state; nothing if there is none, or as many state another one."""
    by_amount: defaultdict[object, list[_StatedValue]] = defaultdict(list)
    for each in stated:
        value = each.operand.value
        by_amount[value.kind if value.unit.lower() in UNITS else value.is_date, value.amount].append(each)
    voices = {key: len({quotations.sources[each.found.text] for each in found}) for key, found in by_amount.items()}
    order = sorted(by_amount, key=lambda key: (-voices[key], -by_amount[key][0].found.score))
    best = by_amount[order[0]] if order else []
    rivals = (by_amount[key] for key in order[1:] if voices[key] == voices[order[0]])
    return [] if any(rival[0].found.score >= NEAR * best[0].found.score for rival in rivals) else best
