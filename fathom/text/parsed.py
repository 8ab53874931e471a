"""A text parsed once: its sentences, their terms, and its units of evidence.

A page is narrowed, scored, compared with others and searched for claims. Each of these needs the same sentences and
terms, and making them costs far more than using them. They are kept compactly, in six to nine bytes a character: a
run may read millions.

A unit of evidence is a part of a text that can be found, quoted and checked by itself, with the lines that it needs
around it: a sentence of a paragraph, a list item under its lead-in, a table row under its header, a code block under
its lead-in, or a heading.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from fathom.text.blocks import Kind, open_fence
from fathom.text.sentences import Sentence, split_sentences
from fathom.text.terms import terms
from fathom.text.tokens import count_tokens

KEPT_CHARS = 6_000_000  # characters of the cached texts, parsed last


class ParsedText:
    """The sentences of a text, numbered from 0, and the terms of each."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __len__(self) -> int:
        return len(self.kinds)

    def sentence(self, number: int) -> Sentence:
        """Return a sentence."""
        start, end = self._places[2 * number], self._places[2 * number + 1]
        return Sentence(self.text[start:end], start, end, self.kinds[number], self.paragraphs[number])

    def holding(self, start: int, end: int) -> range:
        """Return the numbers of the sentences that contain a stretch of the text, given as character offsets."""
        numbers = range(len(self))
        first = max(0, bisect_right(numbers, start, key=lambda number: self._places[2 * number]) - 1)
        last = max(first, bisect_left(numbers, end, key=lambda number: self._places[2 * number]) - 1)
        return range(first, last + 1)

    def terms(self, number: int) -> list[str]:
        """Return the terms of a sentence, in reading order."""
        found, firsts = self._terms
        return found[firsts[number] : firsts[number + 1]]

    def length(self, numbers: range) -> int:
        """Return the number of terms of some consecutive sentences."""
        _, firsts = self._terms
        return firsts[numbers.stop] - firsts[numbers.start]

    @cached_property
    def kinds(self) -> Sequence[Kind]:
        """The kind of each sentence."""
        return self._split[0]

    @cached_property
    def paragraphs(self) -> Sequence[int]:
        """The number of each sentence's paragraph."""
        return self._split[1]

    @property
    def sentences(self) -> list[Sentence]:
        """All sentences."""
        starts, ends = self._places[::2], self._places[1::2]
        places = zip(starts, ends, self.kinds, self.paragraphs, strict=True)
        return [Sentence(self.text[start:end], start, end, kind, paragraph) for start, end, kind, paragraph in places]

    @cached_property
    def tokens(self) -> int:
        """The number of its tokens, as `count_tokens` estimates it."""
        return count_tokens(self.text)

    @cached_property
    def _places(self) -> Sequence[int]:
        return self._split[2]

    @cached_property
    def _split(self) -> tuple[Sequence[Kind], Sequence[int], Sequence[int]]:
        """The kinds, the paragraphs, and the places of the sentences: starts and ends in turns."""
        sentences = split_sentences(self.text)
        return (
            [s.kind for s in sentences],
            array("I", (s.paragraph for s in sentences)),
            array("I", (place for s in sentences for place in (s.start, s.end))),
        )

    @cached_property
    def _terms(self) -> tuple[list[str], Sequence[int]]:
        """The terms of all sentences, and of each the index of its first term; at the end, their number."""
        found, firsts = list[str](), array("I", [0])
        for number in range(len(self)):
            found += terms(self.text[self._places[2 * number] : self._places[2 * number + 1]])
            firsts.append(len(found))
        return found, firsts

    @cached_property
    def occurrences(self) -> Mapping[str, Sequence[int]]:
        """The occurrences of each term: the numbers of its sentences, in order, each as often as it has the term."""
        terms, firsts = self._terms
        found = defaultdict[str, list[int]](list)
        for number, (first, last) in enumerate(pairwise(firsts)):
            for term in terms[first:last]:
                found[term].append(number)
        return {term: array("I", numbers) for term, numbers in found.items()}


Key = TypeVar("Key", bound=tuple[object, ...])
Value = TypeVar("Value")


class KeptTexts(Generic[Key, Value]):
    """What was made of the texts used lately, up to so many characters of them; a key begins with its text."""

    def __init__(self, chars: int) -> None:
        self._room = chars
        self._kept: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return what was made of a text, the same object for the same key; made now where it is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            if key not in self._kept:
                self._room -= len(str(key[0]))
            self._kept[key] = made
            while self._room < 0:
                oldest, _ = self._kept.popitem(last=False)
                self._room += len(str(oldest[0]))
        return made


_kept = KeptTexts[tuple[str], ParsedText](KEPT_CHARS)


def parse(text: str) -> ParsedText:
    """Return a text with its sentences and terms, made when first used; of a text parsed lately, the same object."""
    return _kept.get((text,), lambda: ParsedText(text))


CODE_LINES = 20  # of a code block in one unit
NONE = range(0)

_UNDERLINE = re.compile(r"\n\s*([^\w\s])\1+\s*\Z")
_UNDERLINES = "=-~^\"'`*#+.:_"  # the outermost first, as most reST has them
_GUESSED_LEVEL = 7  # of a heading without a mark
_OPEN = re.compile(r"[:：?？]\W*\Z")
_ANNOUNCING = re.compile(
    r"\b(?:as follows|(?:the )?following(?: \w+){0,3}|(?:see|shown|listed) below)\b[^.]{0,40}[.:]?\W*\Z"
    r"|\A\W*(?:Below|Here) (?:is|are|'s)\b"
)
_POINTING = re.compile(r"(?i)\b(?:these|those|two|three|four|five|six|seven|eight|nine|ten|several)\b")
_FOLLOWING = re.compile(r"\b(?:the following|as follows)\b")
_ANNOUNCED = ("follow", "below", "Below", "Here")  # looking for a part is far quicker than the pattern


class Unit(NamedTuple):
    """A unit, as ranges of the sentences of a parsed text."""

    kind: Kind
    own: range
    lead: range  # its introduction: a header row, "The options are:", the item that contains it
    headings: tuple[int, ...]  # the headings above it, the outermost first
    group: int  # the same for the units of one paragraph, list item, table or code block


def units_of(parsed: ParsedText, text: str) -> list[Unit]:
    """Return the units of a text in reading order."""
    return _Reading(parsed, text).units()


def introduces(sentence: str) -> bool:
    """Whether a sentence announces or asks for the text that follows."""
    around = sentence[:12] + sentence[12:][-100:]
    if _OPEN.search(around):
        return True
    return any(map(around.__contains__, _ANNOUNCED)) and bool(_ANNOUNCING.search(around))


class _Reading:
    """Reads a text from top to bottom and remembers what is above."""

    def __init__(self, parsed: ParsedText, text: str) -> None:
        self._sentences: Sequence[Sentence] = parsed.sentences
        self._text = text
        self._units: list[Unit] = []
        self._headings: list[tuple[int, int]] = []  # level and number of each heading above
        self._above: tuple[int, ...] = ()  # their numbers
        self._items: list[tuple[int, range]] = []  # indentation and first sentence of each item around
        self._before = NONE  # the sentence before, in the same section
        self._paragraph = NONE  # that ends with it
        self._list_lead = NONE  # the introduction of the list
        self._group = 0

    def units(self) -> list[Unit]:
        first = 0
        while first < len(self._sentences):
            last = self._end(first)
            self._group += 1
            self._read(self._sentences[first].kind, range(first, last))
            first = last
        return self._units

    def _end(self, first: int) -> int:
        """Return the end of the block, the table or the code that begins with a sentence."""
        last = first + 1
        if fence := open_fence("", self._line(first)):
            while fence and last < len(self._sentences):
                fence = open_fence(fence, self._line(last))
                last += 1
            return last
        while last < len(self._sentences) and self._goes_on(first, last):
            last += 1
        return last

    def _goes_on(self, first: int, number: int) -> bool:
        start, before, sentence = self._sentences[first], self._sentences[number - 1], self._sentences[number]
        lines = self._text.count("\n", before.end, sentence.start)
        if start.kind == "table":
            return sentence.kind in ("table", "rule") and lines == 1
        if start.kind != "code":
            return sentence.paragraph == before.paragraph
        return sentence.kind == "code" and lines <= 2 and not open_fence("", self._line(number))

    def _read(self, kind: Kind, own: range) -> None:
        if kind == "rule":
            return
        if kind == "heading":
            self._read_heading(own)
            return
        if kind == "item":
            indent = self._indent(own[0])
            while self._items and self._items[-1][0] >= indent:
                self._items.pop()
            self._add(kind, own, self._lead(kind))
            self._items.append((indent, own[:1]))
            return
        if not self._indent(own[0]) or self._sentences[own[0]].kind == "table":
            self._items.clear()
        lead = self._lead(kind)
        if kind == "table":
            self._read_table(own, lead)
        elif kind == "code":
            for first in range(own.start, own.stop, CODE_LINES):
                self._add(kind, range(first, min(first + CODE_LINES, own.stop)), lead)
        else:
            for number in own:
                self._add(kind, range(number, number + 1), lead if number == own.start else NONE)
        self._before = own[-1:] if kind == "prose" else NONE
        self._paragraph = own
        self._list_lead = NONE

    def _read_heading(self, own: range) -> None:
        level = self._level(own[0])
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._above = tuple(number for _, number in self._headings)
        self._add("heading", own, NONE)
        self._headings.append((level, own[0]))
        self._above += (own[0],)
        self._before = self._list_lead = NONE
        self._items.clear()

    def _level(self, number: int) -> int:
        text = self._sentences[number].text
        if text.startswith("#"):
            return len(text) - len(text.lstrip("#"))
        underline = _UNDERLINE.search(text)
        return 1 + max(0, _UNDERLINES.find(underline[1])) if underline else _GUESSED_LEVEL

    def _lead(self, kind: Kind) -> range:
        if self._items:
            return self._items[-1][1]
        if kind == "item":
            if self._before:
                self._list_lead = self._announcing()
            self._before = NONE
            return self._list_lead
        if not self._before:
            return NONE
        wanted = kind in ("code", "table") or introduces(self._sentences[self._before[0]].text)
        return self._before if wanted else NONE

    def _announcing(self) -> range:
        """Return the sentence of the paragraph above that a list belongs to.

        It announces it, is the only one and points to it ("These things are checked."), or has no end of its own and is
        no field ("Present: Ada").
        """
        texts = [(number, self._sentences[number].text) for number in reversed(self._paragraph)]
        last, text = texts[0]
        opened = text[-1].isalnum() and ": " not in text
        if opened or introduces(text) or (len(texts) == 1 and _POINTING.search(text)):
            return range(last, last + 1)
        return next((range(number, number + 1) for number, text in texts if _FOLLOWING.search(text)), NONE)

    def _read_table(self, own: range, lead: range) -> None:
        rows = [number for number in own if self._sentences[number].kind == "table"]
        header = range(rows[0], rows[0] + 1)
        self._add("table", header, lead)
        for number in rows[1:]:
            self._add("table", range(number, number + 1), header)

    def _add(self, kind: Kind, own: range, lead: range) -> None:
        self._units.append(Unit(kind, own, lead, self._above, self._group))

    def _indent(self, number: int) -> int:
        start = self._sentences[number].start
        return start - self._text.rfind("\n", 0, start) - 1

    def _line(self, number: int) -> str:
        """Return a sentence with the text before it on its line."""
        sentence = self._sentences[number]
        return self._text[sentence.start - self._indent(number) : sentence.end]
