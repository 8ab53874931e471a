"""Excerpts: the pieces of a text that may answer a question, each complete enough to be quoted, as Markdown.

A unit by itself; a short list, table or paragraph as a whole; a sentence that announces something with what it
announces; a heading with what follows it. They overlap: the question decides which of them is quoted.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from fathom.text.blocks import Kind, open_fence
from fathom.text.boilerplate import leans, says_nothing
from fathom.text.parsed import NONE, ParsedText, Unit, introduces, parse, units_of
from fathom.text.sentences import Sentence
from fathom.text.tokens import count_tokens

MOST_TOKENS = 200  # of an excerpt of several units
MOST_VALUES, MOST_NESTED = 40, 6  # of a record of a data file; of places one in the other that a value is looked at for
_LIMITING = re.compile(r"(?:However|But|Yet|Unless|Except|Nevertheless|Nonetheless|Only if)\b")
UNDER_HEADING = 100  # tokens of the excerpt that begins with a heading


class Excerpt(NamedTuple):
    """A run of units of a text."""

    units: range
    own: range  # their sentences
    lead: range  # what introduces the first of them
    headings: tuple[int, ...]
    kind: Kind  # of the first unit that is no heading
    announces: bool  # the sentence that the list behind it belongs to, without the list
    brief: bool = False  # a sentence with a long list, of whose items only the first sentences are quoted


class ReadText:
    """A text with its units and excerpts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.parsed: ParsedText = parse(text)
        self.units: Sequence[Unit] = units_of(self.parsed, text)
        self._tokens: dict[int, int] = {}  # of units

    @cached_property
    def excerpts(self) -> list[Excerpt]:
        """All excerpts in reading order; a unit comes before the longer excerpts that begin with it."""
        return list(self._excerpts())

    def _excerpts(self) -> Iterator[Excerpt]:
        ends_of_lists = self._ends_of_lists()
        for number, unit in enumerate(self.units):
            if unit.kind == "heading":
                stop = self._with_announced(self._fitting(number, self._end_of_section(number), UNDER_HEADING))
                if number + 1 < (stop := self._without_part(number, self._fitting(number, stop, MOST_TOKENS))):
                    yield self._excerpt(number, stop)
                continue
            first = self._first(number)
            if not self._is_header(number) and not self._only_announces(unit):
                yield self._excerpt(first, self._with_limit(number + 1))
            ends = {self._end_of_group(number), self._end_of_announced(number), ends_of_lists.get(number, 0)}
            ends = {self._with_announced(end) for end in ends if end > number}
            fitting = {self._fitting(number, end, MOST_TOKENS) for end in ends if end > number + 1}
            fitting |= {end for end in self._ends_of_records(number) if self._fitting(number, end, MOST_TOKENS) == end}
            longer = sorted({self._with_limit(stop) for stop in fitting if stop > number + 1})
            if self._is_brief(number, end := self._end_of_announced(number)):
                yield self._excerpt(number, end)._replace(brief=True)
            yield from (self._excerpt(number, stop) for stop in longer)

    def alone(self, number: int) -> Excerpt:
        """Return a unit as an excerpt."""
        return self._excerpt(number, number + 1)

    def _with_announced(self, stop: int) -> int:
        """Return where that which the unit before `stop` announces ends; `stop` if it announces nothing."""
        return self._end_of_announced(stop - 1)

    def _excerpt(self, first: int, stop: int) -> Excerpt:
        units = self.units[first:stop]
        kind: Kind = next((unit.kind for unit in units if unit.kind != "heading"), "heading")
        own = range(units[0].own.start, units[-1].own.stop)
        behind = (unit for unit in self.units[stop : stop + 1] if len(units) == 1 and unit.kind == "item")
        announces = any(unit.lead == own for unit in behind)
        return Excerpt(range(first, stop), own, units[0].lead, units[0].headings, kind, announces)

    def _first(self, number: int) -> int:
        """Return the unit before, if the sentence can only be understood with it."""
        unit = self.units[number]
        if unit.kind != "prose" or not number or self.units[number - 1].group != unit.group:
            return number
        return number - 1 if leans(self._sentence(unit.own[0]).clean) else number

    def _with_limit(self, stop: int) -> int:
        """Return where a sentence behind `stop` ends, if it limits what is said before it under the same heading."""
        if stop < len(self.units) and self.units[stop].headings == self.units[stop - 1].headings:
            unit = self.units[stop]
            if unit.kind == "prose" and _LIMITING.match(self._sentence(unit.own[0]).clean):
                return stop + 1
        return stop

    def _only_announces(self, unit: Unit) -> bool:
        return unit.kind in ("prose", "item") and self._sentence(unit.own[-1]).text.rstrip().endswith((":", "?", "："))

    def _is_header(self, number: int) -> bool:
        unit = self.units[number]
        return unit.kind == "table" and any(other.lead == unit.own for other in self.units[number + 1 : number + 2])

    def _end_of_section(self, number: int) -> int:
        return next((n for n in range(number + 1, len(self.units)) if self.units[n].kind == "heading"), len(self.units))

    def _end_of_group(self, number: int) -> int:
        """Return where the paragraph or table that begins with a unit ends; its number if it begins with another."""
        group = self.units[number].group
        if number and self.units[number - 1].group == group:
            return number
        return next((n for n in range(number + 1, len(self.units)) if self.units[n].group != group), len(self.units))

    def _ends_of_lists(self) -> dict[int, int]:
        """Return where each list ends, by its first item: items under the same headings, with what they contain."""
        ends: dict[int, int] = {}
        first = None
        for number, unit in enumerate(self.units):
            inside = first is not None and unit.headings == self.units[first].headings
            if inside and (unit.kind == "item" or unit.lead) and unit.kind != "table":
                ends[first or 0] = number + 1
            else:
                first = number if unit.kind == "item" else None
        return ends

    def _ends_of_records(self, number: int) -> Iterator[int]:
        """Yield where the records end that begin with a value of a data file: the places of a list or mapping."""
        path = self._paths[number]
        for place in list(_PLACES.finditer(path))[-MOST_NESTED:]:
            record = path[: place.start()]
            below = (f"{record}.", f"{record}[")
            if not number or not self._paths[number - 1].startswith(below):
                behind = range(number + 1, min(number + MOST_VALUES, len(self.units)))
                yield next((n for n in behind if not self._paths[n].startswith(below)), behind.stop)

    @cached_property
    def _paths(self) -> Sequence[str]:
        """The path of each unit that is one value of a data file, "loans[0].object"; empty for others."""
        found = (unit.kind == "item" and _PATH.match(self._sentence(unit.own[0]).text) for unit in self.units)
        return [one["path"] if one else "" for one in found]

    @cached_property
    def _ends_of_groups(self) -> Sequence[int]:
        """For each unit, the number of the first unit behind it that belongs to another group."""
        ends: list[int] = []
        for _, own in groupby(self.units, key=lambda unit: unit.group):
            size = len([*own])
            ends += [len(ends) + size] * size
        return ends

    def _end_of_announced(self, number: int) -> int:
        """Return where that which a sentence or item announces or contains ends."""
        unit, stop = self.units[number], number + 1
        if unit.kind not in ("prose", "item"):
            return stop
        behind = self._ends_of_groups[number]
        if behind < len(self.units) and self.units[behind].lead == unit.own:
            stop = behind
        while stop < len(self.units) and self.units[stop].lead.start >= unit.own.start and self.units[stop].lead:
            stop += 1
        announces = stop == number + 1 and introduces(self._sentence(unit.own[-1]).text)
        if announces and stop < len(self.units) and self.units[stop].kind != "heading":
            stop += 1
        return stop

    def _fitting(self, first: int, stop: int, most: int) -> int:
        """Return `stop`, or where units from `first` on have no more than `most` tokens and announce nothing more."""
        tokens = 0
        for number in range(first, stop):
            tokens += self._tokens_of(number)
            if tokens > most:
                return self._before_announcing(first, number)
        return stop

    def _without_part(self, first: int, stop: int) -> int:
        """Return `stop`, or where the list in which it stands begins, with what announces it."""
        lead = self.units[stop].lead if stop < len(self.units) and self.units[stop].kind == "item" else NONE
        while lead and stop > first and lead.start <= self.units[stop - 1].own.start:
            stop -= 1
        return stop

    def _before_announcing(self, first: int, stop: int) -> int:
        """Return where the headings, headers and lead-ins before `stop` begin: what they stand above was left out."""
        while stop > first and (
            self.units[stop - 1].kind == "heading"
            or self._is_header(stop - 1)
            or self._only_announces(self.units[stop - 1])
        ):
            stop -= 1
        return stop

    def _tokens_of(self, number: int) -> int:
        if number not in self._tokens:
            own = self.units[number].own
            self._tokens[number] = count_tokens(self.text[self._sentence(own[0]).start : self._sentence(own[-1]).end])
        return self._tokens[number]

    def _is_brief(self, first: int, stop: int) -> bool:
        """Whether what a sentence announces are items, whose first sentences are not too long to be quoted together."""
        items = [unit for unit in self.units[first + 1 : stop] if unit.lead]
        if not any(len(unit.own) > 1 for unit in items) or any(unit.kind != "item" for unit in items):
            return False
        tokens = (count_tokens(self._sentence(unit.own[0]).text) for unit in self.units[first:stop])
        return len(items) > 1 and sum(tokens) <= MOST_TOKENS

    def begins_with_lead_in(self, excerpt: Excerpt) -> bool:
        """Whether an excerpt is a sentence with what it announces."""
        first, last = self.units[excerpt.units[0]], self.units[excerpt.units[-1]]
        return first.kind == "prose" and bool(last.lead) and last.lead.start == first.own.start

    def _sentence(self, number: int) -> Sentence:
        return self.parsed.sentence(number)

    def is_of_fields(self, excerpt: Excerpt) -> bool:
        """Whether an excerpt is several fields or settings, `name: value`, which nothing introduces, and no record."""
        if len(excerpt.units) == 1 or excerpt.kind != "item" or excerpt.lead or self.is_record(excerpt):
            return False
        return all(_FIELD.match(self._sentence(self.units[number].own[0]).text) for number in excerpt.units)

    def is_record(self, excerpt: Excerpt) -> bool:
        """Whether an excerpt is one record of a list in a data file, which is read as a whole, as a row is."""
        first, *others = (self._paths[number] for number in excerpt.units)
        records = (first[: place.end()] for place in _PLACE_OF_LIST.finditer(first))
        return bool(others) and any(all(other.startswith(record) for other in others) for record in records)

    def markdown(self, excerpt: Excerpt, *, heading: bool, only: Sequence[int] = ()) -> str:
        """Return an excerpt as Markdown in its own words, with its lead-in; with `heading` below its last heading.

        Of its units those whose numbers are in `only`, if there are any; of a letter without salutation and close; of a
        brief one the first sentence of each.
        """
        above = excerpt.headings[-1:] if heading else ()
        lead = [number for number in excerpt.lead if number not in excerpt.own]
        own = [number for unit in only for number in self.units[unit].own] or excerpt.own
        if excerpt.brief:
            own = [self.units[unit].own[0] for unit in excerpt.units]
        said = [self._sentence(number) for number in own]
        said = [each for each in said if each.kind != "prose" or not says_nothing(each.text)] or said
        return as_markdown(self.text, [*(self._sentence(number) for number in (*above, *lead)), *said])


_FIELD = re.compile(r"(?:[-*+]\s+)?[^\s:]+:\s+\S")
_PATH = re.compile(r"- (?=[^\s:]{0,300}?[.\]])(?P<path>[^\s:]{1,300}): ")
_PLACE_OF_LIST = re.compile(r"\]")
_PLACES = re.compile(r"(?<!\A)[.\[]")
_LANGUAGE = re.compile(r"[`~]+\s*([\w+#.-]*)")
_CELLS = re.compile(r"(?<!\\)\||\t|(?<=\S)[^\S\n]{3,}(?=\S)")
_ORDERED = re.compile(r"\(?(\d{1,3})[.)]\s")
_ENUMERATOR = re.compile(r"\A\(?(?:\d{1,3}|[a-z])[.)]\s+(?=\S)")


# Emphasis, but not in powers such as 2**3, or in patterns such as *.py and *.md.
_EMPHASIS = re.compile(r"(?<![\w*`])(\*{1,3})(?=[\w\"“'‘(])([^*`\n]+?)(?<=[\w\"”'’).,:;!?])\1(?![\w*`])")


def as_markdown(text: str, sentences: Sequence[Sentence]) -> str:
    """Return some sentences of a text, in reading order, as blocks of Markdown; a heading becomes "Heading:"."""
    return "\n\n".join(_blocks(text, sentences))


def _blocks(text: str, sentences: Sequence[Sentence]) -> Iterator[str]:
    first = 0
    while first < len(sentences):
        kind, last = sentences[first].kind, first + 1
        while last < len(sentences) and _together(sentences[last - 1], sentences[last]):
            last += 1
        block = sentences[first:last]
        first = last
        if kind == "heading":
            yield announced(block[0].clean)
        elif kind == "code":
            yield _code(text, block)
        elif kind in ("table", "rule"):
            yield from _table(block)
        elif kind == "item":
            yield _list(text, block)
        else:
            yield _plain(" ".join(sentence.clean for sentence in block))


def _together(before: Sentence, after: Sentence) -> bool:
    if after.kind in ("code", "item"):
        return before.kind == after.kind
    if after.kind in ("table", "rule"):
        return before.kind in ("table", "rule")
    return before.paragraph == after.paragraph


def announced(heading: str) -> str:
    """Return a heading as it stands above an excerpt: "Heading:"; empty without one.

    "3. Heading" loses its number, with which it would be read as an item of a list, and what it heads as no part of it.
    """
    text = _ENUMERATOR.sub("", heading.strip("#*= "))
    return text if not text or text.endswith(("?", ":", "：")) else f"{text}:"


def _code(text: str, lines: Sequence[Sentence]) -> str:
    start = text.rfind("\n", 0, lines[0].start) + 1
    code = textwrap.dedent(text[start : lines[-1].end]).split("\n")
    opened = _LANGUAGE.search(code[0]) if open_fence("", code[0]) else None
    inner = code[1 if opened else 0 : -1 if len(code) > 1 and open_fence("", code[-1]) else None]
    longest = max((len(run) for line in inner for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{opened[1] if opened else ''}", *inner, fence])


def _table(rows: Sequence[Sentence]) -> Iterator[str]:
    cells = [_cells(row.text) for row in rows if row.kind == "table"]
    if not cells:
        return
    columns = max(map(len, cells))
    lines = [f"| {' | '.join([*row, *[''] * (columns - len(row))])} |" for row in cells]
    yield "\n".join([lines[0], f"|{'---|' * columns}", *lines[1:]])


def first_cell(row: str) -> str:
    """Return what the first cell of a table's row says."""
    return _cells(row)[0]


def _cells(row: str) -> list[str]:
    return [_plain(" ".join(cell.split())) for cell in _CELLS.split(row.strip().strip("|"))]


def _list(text: str, sentences: Sequence[Sentence]) -> str:
    items: dict[int, list[Sentence]] = {}
    for sentence in sentences:
        items.setdefault(sentence.paragraph, []).append(sentence)
    lines = []
    for item in items.values():
        start = item[0].start
        indent = start - text.rfind("\n", 0, start) - 1
        ordered = _ORDERED.match(item[0].text)
        marker = f"- {ordered[1]}." if ordered else "-"
        lines.append(f"{' ' * indent}{marker} {_plain(' '.join(sentence.clean for sentence in item))}")
    return textwrap.dedent("\n".join(lines))


def _plain(text: str) -> str:
    return _EMPHASIS.sub(r"\2", text)
