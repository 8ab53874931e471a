"""A text parsed once: its sentences and their terms, shared by every stage that reads the text.

A page is narrowed, scored, compared with others and searched for claims. Each of these needs the same sentences and
terms, and making them costs far more than using them. They are kept compactly, in six to nine bytes a character: a run
may read millions.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from threading import Lock

from fathom.text.blocks import Kind
from fathom.text.sentences import Sentence, split_sentences
from fathom.text.terms import Language, terms

KEPT_CHARS = 6_000_000  # of the texts parsed last

Split = Callable[[str], Sequence[Sentence]]


class ParsedText:
    """The sentences of a text, numbered from 0, and the terms of each."""

    def __init__(self, text: str, sentences: Sequence[Sentence], language: Language) -> None:
        self._text = text
        self.kinds: Sequence[Kind] = [s.kind for s in sentences]
        self.paragraphs: Sequence[int] = array("I", (s.paragraph for s in sentences))
        self._places = array("I", (place for s in sentences for place in (s.start, s.end)))
        self._terms: list[str] = []  # of all sentences
        self._firsts = array("I", [0])  # of each sentence, the index of its first term; at the end, their number
        for sentence in sentences:
            self._terms += terms(sentence.text, language)
            self._firsts.append(len(self._terms))

    def __len__(self) -> int:
        return len(self.kinds)

    def sentence(self, number: int) -> Sentence:
        """Return a sentence."""
        start, end = self._places[2 * number], self._places[2 * number + 1]
        return Sentence(self._text[start:end], start, end, self.kinds[number], self.paragraphs[number])

    def holding(self, start: int, end: int) -> range:
        """Return the numbers of the sentences that a stretch of the text, as character offsets, stands in."""
        numbers = range(len(self))
        first = max(0, bisect_right(numbers, start, key=lambda number: self._places[2 * number]) - 1)
        last = max(first, bisect_left(numbers, end, key=lambda number: self._places[2 * number]) - 1)
        return range(first, last + 1)

    def terms(self, number: int) -> list[str]:
        """Return the terms of a sentence, in reading order."""
        return self._terms[self._firsts[number] : self._firsts[number + 1]]

    def length(self, numbers: range) -> int:
        """Return how many terms some sentences in a row have."""
        return self._firsts[numbers.stop] - self._firsts[numbers.start]

    @property
    def sentences(self) -> list[Sentence]:
        """All sentences."""
        return list(map(self.sentence, range(len(self))))

    @cached_property
    def occurrences(self) -> Mapping[str, Sequence[int]]:
        """Where each term occurs: the numbers of its sentences, in order, each as often as it has the term."""
        found: dict[str, list[int]] = {}
        for number in range(len(self)):
            for term in self.terms(number):
                found.setdefault(term, []).append(number)
        return {term: array("I", numbers) for term, numbers in found.items()}


_Key = tuple[str, Language, Split]
_kept: OrderedDict[_Key, ParsedText] = OrderedDict()
_lock = Lock()


def parse(text: str, language: Language = "english", split: Split = split_sentences) -> ParsedText:
    """Return a text's sentences, as `split` makes them, and their terms; of a text parsed lately, the same object."""
    key = (text, language, split)
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    parsed = ParsedText(text, split(text), language)
    with _lock:
        _kept[key] = parsed
        chars = sum(len(kept) for kept, *_ in _kept)
        while chars > KEPT_CHARS:
            (oldest, *_), _ = _kept.popitem(last=False)
            chars -= len(oldest)
    return parsed
