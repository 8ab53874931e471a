"""The pages of two runs side by side: which sentences stand in both, and which one became which."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from fathom.changes.values import figures_differ, names_apart
from fathom.evidence.likeness import cells_of
from fathom.evidence.stored import StoredText
from fathom.evidence.support import spaced_words
from fathom.facts.extraction import blanked, facts_of
from fathom.models import Quote, Source
from fathom.text.blocks import Kind
from fathom.text.parsed import parse
from fathom.text.terms import query_terms

ALIKE = 0.5  # share of their words that two wordings of one sentence have in common
IN_PLACE = 0.2  # weight of an equal neighbour: the sentence stands in the same place
NEIGHBOURS = 2  # lines on each side that identify the place
MOST = 40  # sentences that each is compared with: keeps a page of a thousand similar rows linear
_FIELD = re.compile(r"\W*([^\W\d][^:.|]{1,60}?)\s*:\s+\S")


class PageLine(NamedTuple):
    """A sentence, heading, item or row of a page. `key` holds the words and signs by which the line is found again."""

    key: str
    text: str
    kind: Kind
    header: str  # for a row: the row that names the columns
    above: tuple[str, ...]  # the keys of its neighbours
    below: tuple[str, ...]

    @property
    def around(self) -> set[str]:
        """The keys of all its neighbours."""
        return {*self.above, *self.below}

    @property
    def cells(self) -> list[str]:
        """The cells of a row."""
        return cells_of(self.text)


class ReadPage:
    """All that a run read from one address."""

    def __init__(self, texts: Sequence[StoredText]) -> None:
        self._texts = texts
        self.source: Source = texts[0].source
        self.whole = any(text.source.full for text in texts)

    @cached_property
    def lines(self) -> list[PageLine]:
        """Its lines, each once, in reading order."""
        return list({line.key: line for lines in self._read for line in lines if line}.values())

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of its lines."""
        return frozenset(line.key for line in self.lines)

    @cached_property
    def _read(self) -> list[list[PageLine | None]]:
        return [list(_lines(text.text)) for text in self._texts]

    def holding(self, quote: Quote) -> list[PageLine]:
        """Return the lines in which a quote of this page stands."""
        for text, lines in zip(self._texts, self._read, strict=True):
            start = text.text.find(quote.text)
            if start >= 0 and quote.text:
                numbers = parse(text.text).holding(start, start + len(quote.text))
                return [line for number in numbers if (line := lines[number])]
        return []

    def covers(self, line: PageLine) -> bool:
        """Whether this run read the part of the page around a line of the other run."""
        return self.whole or all(not self.keys.isdisjoint(near) for near in (line.above, line.below))


class Edits(NamedTuple):
    """The lines of a page that became other lines, by their keys, in both directions."""

    after: Mapping[str, PageLine]
    before: Mapping[str, PageLine]


def pages_of(texts: Iterable[StoredText]) -> dict[str, ReadPage]:
    """Return the pages that some texts were read from, by address."""
    found: defaultdict[str, list[StoredText]] = defaultdict(list)
    for text in texts:
        found[text.source.url].append(text)
    return {url: ReadPage(own) for url, own in found.items()}


def edits_of(old: ReadPage, new: ReadPage) -> Edits:
    """Pair lines that only the old page has with lines that only the new page has, the most alike first."""
    removed = [line for line in old.lines if line.key not in new.keys]
    added = [line for line in new.lines if line.key not in old.keys]
    after: dict[str, PageLine] = {}
    before: dict[str, PageLine] = {}
    for _, one, other in sorted(_pairs(removed, added), key=lambda pair: -pair[0]):
        if one.key not in after and other.key not in before:
            after[one.key], before[other.key] = other, one
    return Edits(after, before)


def _lines(text: str) -> Iterator[PageLine | None]:
    """Yield a line for each sentence of a text, and None for parts without content: rules and column names."""
    sentences = parse(text).sentences
    keys = [spaced_words(sentence.clean) for sentence in sentences]
    header = ""
    for number, (sentence, key) in enumerate(zip(sentences, keys, strict=True)):
        if sentence.kind == "rule" and number and sentences[number - 1].kind == "table":
            header = sentences[number - 1].text
        elif sentence.kind != "table":
            header = ""
        names = sentence.kind == "table" and [one.kind for one in sentences[number + 1 : number + 2]] == ["rule"]
        if sentence.kind == "rule" or names or not key.strip():
            yield None
            continue
        above = tuple(filter(str.strip, keys[max(0, number - NEIGHBOURS) : number]))
        below = tuple(filter(str.strip, keys[number + 1 : number + 1 + NEIGHBOURS]))
        said = " | ".join(cells_of(sentence.clean)) if sentence.kind == "table" else sentence.clean
        yield PageLine(key, said, sentence.kind, header, above, below)


def _pairs(removed: Sequence[PageLine], added: Sequence[PageLine]) -> Iterator[tuple[float, PageLine, PageLine]]:
    holding: defaultdict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(added):
        for word in _about(line) | line.around:
            holding[word].append(number)
    for line in removed:
        words = sorted(_about(line) | line.around, key=lambda word: (len(holding.get(word, ())), word))
        near = dict.fromkeys(number for word in words for number in holding.get(word, ()))
        for number in islice(near, MOST):
            if (score := _alike(line, added[number])) >= ALIKE:
                yield score, line, added[number]


def _about(line: PageLine) -> set[str]:
    """Return the words of a line without its numbers and dates."""
    facts = facts_of(line.text)
    plain = blanked(facts.undated, ((number.start, number.end) for number in facts.numbers))
    return {term for term in query_terms(plain) if not term.isdigit()}


def _alike(a: PageLine, b: PageLine) -> float:
    """Return a score, from 0 to about 1, for how likely a line became another one."""
    in_place = IN_PLACE if a.around & b.around else 0.0
    if "table" in (a.kind, b.kind):
        return _rows_alike(a, b) + in_place
    field, other = _FIELD.match(a.text), _FIELD.match(b.text)
    if field and other and spaced_words(field[1]) == spaced_words(other[1]):
        return ALIKE + 2 * in_place
    mine, yours = _about(a), _about(b)
    if not mine and not yours and in_place:
        return ALIKE
    if names_apart(a.text, b.text) and figures_differ(a.text, b.text):
        return 0.0  # something else is said of somebody else
    shared = 2 * len(mine & yours) / (len(mine) + len(yours) or 1)
    return shared + in_place if len(mine & yours) > 1 or shared > ALIKE or in_place else 0.0


def _rows_alike(a: PageLine, b: PageLine) -> float:
    """Whether two rows are the same row: they begin with the same cell."""
    if a.kind != b.kind or not a.cells or not b.cells:
        return 0.0
    return ALIKE + IN_PLACE if spaced_words(a.cells[0]) == spaced_words(b.cells[0]) else 0.0
