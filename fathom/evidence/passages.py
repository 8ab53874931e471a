"""The passages of many texts that come nearest to a claim, quickly.

The words of all claims are known beforehand, so a text is read once and only the sentences with those words are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from heapq import nlargest
from math import fsum
from typing import NamedTuple

from fathom.evidence.stored import StoredText
from fathom.evidence.support import claim_weights
from fathom.text.sentences import Sentence, split_sentences
from fathom.text.terms import is_cjk, terms

LEAST = 0.25  # share of a claim's weight that a passage must have to be about the same thing
NEIGHBOURS = 2  # sentences that a passage may take in beside its best one
WORTH = 0.08  # share of the claim that a neighbour must add
MAX_CHARS = 1_200  # of a passage
BEGINNING = 2  # letters that a word and its stem have in common
BEFORE = 600  # characters before a passage that may have the names that its pronouns mean
_BLANKS = str.maketrans(dict.fromkeys('\n\t\r!"#&()*/:;<=>?@[\\]^_`{|}~“”„«»…–—', " "))


class Passage(NamedTuple):
    """One to three sentences of a text, and the best of them."""

    text: StoredText
    start: int
    end: int
    best: Sentence

    @property
    def words(self) -> str:
        """What the passage says."""
        return self.text.text[self.start : self.end]

    @property
    def near(self) -> str:
        """The title and what comes before the passage: a name that the passage refers to may be there."""
        return f"{self.text.source.title}\n{self.text.text[max(0, self.start - BEFORE) : self.start]}"


class Search:
    """Texts, read for the terms of some claims."""

    def __init__(self, texts: Iterable[StoredText], claims: Iterable[str]) -> None:
        wanted = frozenset(term for claim in claims for term in claim_weights(claim))
        beginnings = {term[:BEGINNING] for term in wanted}

        @cache  # a word is looked up once for all texts
        def wanted_in(word: str) -> frozenset[str]:
            # A stem begins as its word does, unless accents are folded.
            possible = word[:BEGINNING] in beginnings or not (word.isascii() and word.isalpha())
            return wanted.intersection(terms(word)) if possible else frozenset()

        self._read = [_ReadText(text, wanted_in) for text in texts]

    def passages(
        self, claim: str, source_ids: Collection[str] | None = None, *, least: float = LEAST, most: int = 3
    ) -> list[Passage]:
        """Return the passages that have most of a claim, of those the search was made for; the best first.

        `least` is the share of the claim's weight that the best sentence must have, `most` a number for each text.
        """
        weights = claim_weights(claim)
        total = sum(weights.values())
        found: list[tuple[float, Passage]] = []
        for read in self._of(source_ids) if weights else ():
            best = read.best(weights, least * total, most)
            found += [(weight, read.passage(number, weights, total)) for weight, number in best]
        return [passage for _, passage in sorted(found, key=lambda pair: -pair[0])]

    def stretch(self, claim: str, source_ids: Collection[str] | None = None) -> Passage | None:
        """Return the sentences in a row that have most of a claim together, however little each of them has."""
        weights = claim_weights(claim)
        stretches = [found for read in self._of(source_ids) if (found := read.stretch(weights))]
        return max(stretches, key=lambda pair: pair[0])[1] if stretches else None

    def _of(self, source_ids: Collection[str] | None) -> list[_ReadText]:
        return [read for read in self._read if source_ids is None or read.text.source.source_id in source_ids]


class _ReadText:
    """A text with its sentences and the wanted terms that they hold; read when it is first needed."""

    def __init__(self, text: StoredText, wanted_in: Callable[[str], frozenset[str]]) -> None:
        self.text = text
        self._wanted_in = wanted_in

    @cached_property
    def _sentences(self) -> list[Sentence]:
        return [s for s in split_sentences(self.text.text) if s.kind not in ("heading", "rule")]

    @cached_property
    def _spaced(self) -> str:
        """The text in lowercase with blanks between words; every character keeps its place."""
        text = self.text.text.translate(_BLANKS).replace(". ", "  ").replace(", ", "  ")
        lowered = text.lower()
        return lowered if len(lowered) == len(text) else text

    @cached_property
    def _known(self) -> Mapping[str, frozenset[str]]:
        return {word: found for word in set(self._spaced.split()) if (found := self._wanted_in(word))}

    @cached_property
    def _terms(self) -> frozenset[str]:
        return frozenset().union(*self._known.values())

    @cached_property
    def _held(self) -> Sequence[frozenset[str]]:
        """Of each sentence, the wanted terms."""
        known, spaced = self._known, self._spaced
        if any(is_cjk(term) for term in self._terms):  # a run of such writing is cut elsewhere in a sentence
            return [self._terms.intersection(terms(sentence.text)) for sentence in self._sentences]
        found = (known.keys() & spaced[s.start : s.end].split() for s in self._sentences)
        return [frozenset().union(*(known[word] for word in words)) for words in found]

    @cached_property
    def _holders(self) -> Mapping[str, Sequence[int]]:
        holders: dict[str, list[int]] = {}
        for number, held in enumerate(self._held):
            for term in held:
                holders.setdefault(term, []).append(number)
        return holders

    def best(self, weights: Mapping[str, float], least: float, most: int) -> list[tuple[float, int]]:
        """Return the best sentences with their weight; the earlier of equals."""
        present = [term for term in weights if term in self._terms]
        rest = sum(weights[term] for term in present)
        candidates: set[int] = set()
        for term in sorted(present, key=lambda term: (len(self._holders.get(term, ())), term)):
            if rest < least:
                break  # a sentence of that weight has one of the rarer terms: the others together have less
            candidates.update(self._holders.get(term, ()))
            rest -= weights[term]
        scored = ((_weight(self._held[i] & weights.keys(), weights), i) for i in candidates)
        return nlargest(most, (pair for pair in scored if pair[0] >= least), key=lambda pair: (pair[0], -pair[1]))

    def passage(self, number: int, weights: Mapping[str, float], total: float) -> Passage:
        """Return a sentence with the neighbours that add enough of the claim."""
        first = last = number
        held = self._held[number] & weights.keys()
        for _ in range(NEIGHBOURS):
            options = [i for i in (first - 1, last + 1) if 0 <= i < len(self._sentences)]
            gains = {i: _weight((self._held[i] & weights.keys()) - held, weights) for i in options}
            best = max(gains, key=lambda i: gains[i], default=number)
            if gains.get(best, 0.0) < WORTH * total or self._chars(min(first, best), max(last, best)) > MAX_CHARS:
                break
            first, last, held = min(first, best), max(last, best), held | (self._held[best] & weights.keys())
        return Passage(self.text, self._sentences[first].start, self._sentences[last].end, self._sentences[number])

    def stretch(self, weights: Mapping[str, float]) -> tuple[float, Passage] | None:
        """Return the sentences in a row, at most as long as a passage, that have most of a claim."""
        held = [terms & weights.keys() for terms in self._held]
        best, run = 0.0, range(0)
        for first in (number for number, own in enumerate(held) if own):
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
        number = max(run, key=lambda i: _weight(held[i], weights))
        sentences = self._sentences
        return best, Passage(self.text, sentences[run[0]].start, sentences[run[-1]].end, sentences[number])

    def _chars(self, first: int, last: int) -> int:
        return self._sentences[last].end - self._sentences[first].start


def _weight(held: Iterable[str], weights: Mapping[str, float]) -> float:
    """Return the weight of some terms, to the last bit the same in whatever order: a check is repeated elsewhere."""
    return fsum(map(weights.__getitem__, held))
