"""Fast search for the passages of many texts that come closest to a claim.

A text is parsed once; a claim looks up the sentences that have its words.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from math import fsum
from typing import NamedTuple

from fathom.evidence.editions import Editions
from fathom.evidence.stored import StoredText
from fathom.evidence.support import claim_weights, places
from fathom.text.blocks import Kind
from fathom.text.parsed import ParsedText, parse
from fathom.text.sentences import Sentence
from fathom.text.terms import terms

LEAST = 0.25  # share of a claim's weight that a passage must have to be about the same thing
NEIGHBOURS = 2  # sentences that a passage may have besides its best one
WORTH = 0.08  # share of the claim that a neighbour must add
MAX_CHARS = 1_200  # of a passage
SHOWN_CHARS = 500  # characters of a passage that was shown to a judge and is quoted as it is
BEFORE = 600  # characters before a passage that may have the names that its pronouns mean


class SourcePassage(NamedTuple):
    """One to three sentences of a text, and the best of them."""

    text: StoredText
    start: int
    end: int
    best: Sentence

    @property
    def words(self) -> str:
        """The text of the passage."""
        return self.text.text[self.start : self.end]

    @property
    def near(self) -> str:
        """The title and the text before the passage, which may contain names that the passage refers to."""
        return f"{self.text.source.title}\n{self.text.text[max(0, self.start - BEFORE) : self.start]}"


class TableRow(NamedTuple):
    """A row of a table, with the row that names the columns, if one does."""

    passage: SourcePassage
    header: Sentence | None


class Search:
    """Texts in which the passages on a claim are searched."""

    def __init__(self, texts: Iterable[StoredText]) -> None:
        self._read = list(map(_ReadText, texts))

    @property
    def texts(self) -> list[StoredText]:
        """The texts that are searched."""
        return [read.text for read in self._read]

    @cached_property
    def editions(self) -> Editions:
        """Which of the sources are later editions of others."""
        return Editions(self.texts)

    def passages(
        self, claim: str, source_ids: Collection[str] | None = None, *, least: float = LEAST, most: int = 3
    ) -> list[SourcePassage]:
        """Return the passages that have most of a claim, the best first.

        `least` is the share of the claim's weight that the best sentence must have, `most` a number for each text.
        """
        weights = claim_weights(claim)
        total = sum(weights.values())
        found: list[tuple[float, SourcePassage]] = []
        for read in self._of(source_ids) if weights else ():
            best = read.best(weights, least * total, most)
            found += [(weight, read.passage(number, weights, total)) for weight, number in best]
        return [passage for _, passage in sorted(found, key=lambda pair: -pair[0])]

    def stretch(self, claim: str, source_ids: Collection[str] | None = None) -> SourcePassage | None:
        """Return the consecutive sentences that together have most of a claim, however little each of them has."""
        weights = claim_weights(claim)
        stretches = [found for read in self._of(source_ids) if (found := read.stretch(weights))]
        return max(stretches, key=lambda pair: pair[0])[1] if stretches else None

    def rows(self, claim: str, source_ids: Collection[str] | None = None, most: int = 12) -> list[TableRow]:
        """Return the table rows that have most of a claim, at most `most` of each text, the best first."""
        weights = claim_weights(claim)
        least = LEAST * sum(weights.values())
        found = [pair for read in self._of(source_ids) if weights for pair in read.rows(weights, least, most)]
        return [row for _, row in sorted(found, key=lambda pair: -pair[0])]

    def verbatim(self, claim: str, source_ids: Collection[str] | None = None) -> Iterator[SourcePassage]:
        """Yield the places where the texts have a claim word for word; `best` holds the sentences with the words."""
        for read in self._of(source_ids):
            yield from (read.around(start, end) for start, end in places(claim, read.text.text))

    def narrowed(self, claim: str, text: StoredText, start: int, end: int) -> SourcePassage:
        """Return the part of a stretch of a text that has most of a claim, or all of it if it is short."""
        read = next(read for read in self._read if read.text is text)
        if end - start <= SHOWN_CHARS:
            return read.around(start, end)
        return read.within(claim_weights(claim), start, end) or read.around(start, start + SHOWN_CHARS)

    def whole(self, source_ids: Collection[str] | None) -> list[str]:
        """Return the texts of some sources, or of all, with the title, the address and the date of each."""
        return [read.whole for read in self._of(source_ids)]

    def titled(self, about: Collection[str]) -> list[str]:
        """Return the ids of the sources whose titles have all of some terms."""
        titles = {read.text.source.source_id: read.text.source.title for read in self._read} if about else {}
        return [source_id for source_id, title in titles.items() if set(about) <= set(terms(title))]

    def _of(self, source_ids: Collection[str] | None) -> list[_ReadText]:
        return [read for read in self._read if source_ids is None or read.text.source.source_id in source_ids]


class _ReadText:
    """A text with its sentences, parsed when it is first needed. Headings and rules do not count as sentences."""

    def __init__(self, text: StoredText) -> None:
        self.text = text

    @cached_property
    def whole(self) -> str:
        """The text with what is known of its source."""
        source = self.text.source
        fields = (f"{name}: {value}" for name, value in source.fields.items())
        return "\n".join([self.text.text, source.title, source.url, source.location, source.published, *fields])

    @cached_property
    def _parsed(self) -> ParsedText:
        return parse(self.text.text)

    @cached_property
    def _said(self) -> Sequence[int]:
        """The numbers of the sentences that count."""
        return array("I", (i for i, kind in enumerate(self._parsed.kinds) if kind not in ("heading", "rule")))

    @cached_property
    def _headers(self) -> Mapping[int, int]:
        """The header row (above the table's rule) of each row of a table that has one."""
        found: dict[int, int] = {}
        kinds = self._parsed.kinds
        header = -1
        for number, kind in enumerate(kinds):
            if kind == "rule" and number and kinds[number - 1] == "table":
                header = number - 1
            elif kind != "table":
                header = -1
            elif header >= 0 and kinds[number + 1 : number + 2] != ["rule"]:
                found[number] = header
        return found

    def within(self, weights: Mapping[str, float], start: int, end: int) -> SourcePassage | None:
        """Return the sentence of a stretch of the text that has most of a claim, with neighbours; None if none has."""
        held = self._parsed.holding(start, end)
        places = [place for number in held if (place := self._place(number)) is not None]
        best = max(places, key=lambda place: _weight(self._held(place, weights), weights), default=None)
        if best is None or not self._held(best, weights):
            return None
        return self.passage(best, weights, sum(weights.values()))

    def rows(self, weights: Mapping[str, float], least: float, most: int) -> list[tuple[float, TableRow]]:
        """Return the best rows of tables with their weight."""
        best = self.best(weights, least, most, "table")
        return [(weight, self._row(place)) for weight, place in best]

    def _row(self, place: int) -> TableRow:
        header = self._headers.get(self._said[place])
        named = None if header is None else self._parsed.sentence(header)
        return TableRow(self._passage(place, place, place), named)

    def around(self, start: int, end: int) -> SourcePassage:
        """Return a stretch of the text as a passage; all sentences that contain it count as its best sentence."""
        held = self._parsed.holding(start, end)
        whole, until = self._parsed.sentence(held[0]), self._parsed.sentence(held[-1]).end
        return SourcePassage(self.text, start, end, whole._replace(text=self.text.text[whole.start : until], end=until))

    def best(
        self, weights: Mapping[str, float], least: float, most: int, kind: Kind | None = None
    ) -> list[tuple[float, int]]:
        """Return the best sentences, of one kind if it is given, with their weight; the earlier of equals."""
        occurrences = self._parsed.occurrences
        present = [term for term in weights if term in occurrences]
        rest = sum(weights[term] for term in present)
        candidates: set[int] = set()
        for term in sorted(present, key=lambda term: (len(occurrences[term]), term)):
            if rest < least:
                break  # a sentence of that weight has one of the rarer terms: the others together have less
            candidates.update(occurrences[term])
            rest -= weights[term]
        said = (self._place(i) for i in candidates if not kind or self._parsed.kinds[i] == kind)
        scored = ((_weight(self._held(place, weights), weights), place) for place in said if place is not None)
        return nlargest(most, (pair for pair in scored if pair[0] >= least), key=lambda pair: (pair[0], -pair[1]))

    def passage(self, place: int, weights: Mapping[str, float], total: float) -> SourcePassage:
        """Return a sentence with the neighbours that add enough of the claim."""
        first = last = place
        held = self._held(place, weights)
        for _ in range(NEIGHBOURS):
            options = [i for i in (first - 1, last + 1) if 0 <= i < len(self._said)]
            gains = {i: _weight(self._held(i, weights) - held, weights) for i in options}
            best = max(gains, key=lambda i: gains[i], default=place)
            if gains.get(best, 0.0) < WORTH * total or self._chars(min(first, best), max(last, best)) > MAX_CHARS:
                break
            first, last, held = min(first, best), max(last, best), held | self._held(best, weights)
        return self._passage(first, last, place)

    def stretch(self, weights: Mapping[str, float]) -> tuple[float, SourcePassage] | None:
        """Return the consecutive sentences, at most as long as a passage, that have most of a claim."""
        held = [self._held(place, weights) for place in range(len(self._said))]
        best, run = 0.0, range(0)
        for first in (place for place, own in enumerate(held) if own):
            together: set[str] = set()
            for last in range(first, len(held)):
                if last > first and self._chars(first, last) > MAX_CHARS:
                    break
                if held[last] - together:
                    together |= held[last]
                    weight = _weight(together, weights)
                    best, run = max((best, run), (weight, range(first, last + 1)), key=lambda pair: pair[0])
        if not run:
            return None
        return best, self._passage(run[0], run[-1], max(run, key=lambda place: _weight(held[place], weights)))

    def _place(self, number: int) -> int | None:
        """Return the position of a sentence among the sentences that count; None if it does not count."""
        place = bisect_left(self._said, number)
        return place if place < len(self._said) and self._said[place] == number else None

    def _held(self, place: int, weights: Mapping[str, float]) -> set[str]:
        return weights.keys() & self._parsed.terms(self._said[place])

    def _chars(self, first: int, last: int) -> int:
        return self._sentence(last).end - self._sentence(first).start

    def _sentence(self, place: int) -> Sentence:
        return self._parsed.sentence(self._said[place])

    def _passage(self, first: int, last: int, best: int) -> SourcePassage:
        return SourcePassage(self.text, self._sentence(first).start, self._sentence(last).end, self._sentence(best))


def _weight(held: Iterable[str], weights: Mapping[str, float]) -> float:
    """Return the weight of some terms, to the last bit the same in whatever order: a check is repeated elsewhere."""
    return fsum(map(weights.__getitem__, held))
