"""How relevant an excerpt is to a question: the one ranking of search, narrowing, notes and report.

BM25 with fields (Robertson, Zaragoza and Taylor, 2004): what an excerpt says, what introduces it, the headings above it,
its neighbours, and its document's title. A term that texts use in place of the question's counts in part. An excerpt
that holds the kind of thing that is asked for, and one that covers more of the question, are worth more.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from fathom.retrieval.excerpts import Excerpt, ReadText
from fathom.retrieval.expansion import related_terms
from fathom.retrieval.spelling import FAMILY_LETTERS, is_family, is_misspelt
from fathom.retrieval.kinds import has_kind, kind_of
from fathom.retrieval.ranking import Passage
from fathom.text.blocks import Kind
from fathom.text.terms import query_terms, terms
from fathom.text.tokens import count_tokens

K1, B = 1.2, 0.4
SHORTEST = 8  # terms; shorter excerpts are not better
OWN, LEAD, HEADING, UPPER_HEADING, TITLE, NEIGHBOUR = 1.0, 0.6, 0.8, 0.4, 0.6, 0.25  # weights of the fields
RELATED = 0.4  # of a term that texts use in place of the question's
PAIR = 0.3  # worth of two of the question's terms side by side, as a share of what the two are worth
POINTING = 0.5  # factor for an excerpt that is nothing but links
FAMILY = 0.4  # weight of a word of the same family, such as "elasticity" for "elastic"
MISSPELT = 0.8  # weight of a word that differs from one that no text has by one letter
OF_KIND = 1.25  # factor for an excerpt with the kind of thing that is asked for
MOST_RANKED = 400
LEAST_ROOM = 10  # tokens: hardly any excerpt is shorter

_UNSET = re.compile(
    r"\b(?:unless|if|when|where|without) (?:\w+ ){0,3}?(?:nothing|nobody|no one|otherwise|not|configur\w+|specif\w+|"
    r"setting)\b|\bout of the box\b|\bby itself\b",
    re.IGNORECASE,
)


_LINK = re.compile(r"\[[^\[\]]*\]\([^()\s]*\)")
_WORD = re.compile(r"\w{2}")


class Asked(NamedTuple):
    """What a question asks for."""

    wording: str
    weights: Mapping[str, float]  # of its terms
    terms: Mapping[str, Mapping[str, float]]  # each with what texts may say instead and its weight, itself with 1
    pairs: frozenset[tuple[str, str]]
    kind: re.Pattern[str] | None


class Found(NamedTuple):
    """An excerpt that bears on a question."""

    text: int  # index of its text
    excerpt: Excerpt
    score: float
    share: float  # of the question's terms, by worth, that it or its surroundings hold


def read_asked(
    question: str, topic: Sequence[str] | None = None, beside: Mapping[str, float] | None = None
) -> Asked:
    """Return what a question asks for.

    `topic` are its terms, if they are not all that are no function words; `beside` has further terms with their
    weights, which count less than 1.
    """
    asked = list(topic or query_terms(question))
    if _UNSET.search(question):
        asked = list(dict.fromkeys([*asked, "default"]))
    weights = {**(beside or {}), **dict.fromkeys(asked, 1.0)}
    wanted = {term: {**dict.fromkeys(related_terms(term), RELATED), term: 1.0} for term in weights}
    pairs = frozenset(pair for pair in pairwise(terms(question)) if wanted.keys() >= set(pair))
    return Asked(question, weights, wanted, pairs, kind_of(question))


class Chosen(NamedTuple):
    """A chosen excerpt as Markdown."""

    text: int  # index of its text
    kind: Kind
    markdown: str
    share: float


class Place(NamedTuple):
    """Where a text has an excerpt, and how relevant that is."""

    start: int
    score: float


def best_places(question: str, texts: Sequence[Passage]) -> dict[int, list[Place]]:
    """Return by text the places of its excerpts that bear on a question, the best first; other texts are left out."""
    evidence, places = Evidence(texts), defaultdict[int, list[Place]](list)
    for found in evidence.rank(read_asked(question)):
        places[found.text].append(Place(evidence.start(found), found.score))
    return dict(places)


class Evidence:
    """The excerpts of some texts, to be ranked by questions."""

    def __init__(self, texts: Sequence[Passage]) -> None:
        self.passages = texts
        self._read = [_Text(text) for text in texts]
        self._units = sum(len(read.text.units) for read in self._read)
        lengths = sum(len(read.text.parsed.terms(n)) for read in self._read for unit in read.text.units for n in unit.own)
        self._mean = lengths / (self._units or 1) or 1.0

    def rank(self, asked: Asked) -> list[Found]:
        """Return the excerpts that hold some term of a question, the best first; of equals the earlier one."""
        asked = self._with_families(asked)
        idf = self._worth(asked)
        total = sum(idf.values()) or 1.0
        found: list[Found] = []
        for number, read in enumerate(self._read):
            for excerpt in read.holding(asked):
                counts = read.counts(excerpt, asked)
                norm = K1 * (1 - B + B * max(SHORTEST, read.length(excerpt)) / self._mean)
                score = sum(idf[term] * n * (K1 + 1) / (n + norm) for term, n in counts.items())
                score += PAIR * sum(idf[a] + idf[b] for a, b in read.pairs(excerpt, asked)) / 2
                share = sum(idf[term] for term in counts) / total
                score *= 1 + share
                if asked.kind and has_kind(asked.kind, read.says(excerpt), asked.wording):
                    score *= OF_KIND
                if read.only_points(excerpt):
                    score *= POINTING
                found.append(Found(number, excerpt, round(score, 9), share))
        found.sort(key=lambda each: -each.score)
        return found

    def choose(self, found: Sequence[Found], asked: Asked, max_tokens: int, *, overhead: int = 0) -> list[Chosen]:
        """Return the best excerpts that fit together, the best first, when each takes `overhead` tokens more.

        One that is part of a chosen one is passed over; one that contains chosen ones takes the place of the first.
        """
        chosen: list[tuple[Found, str, int]] = []
        said: set[str] = set()
        room = max_tokens
        for each in found[:MOST_RANKED]:
            over = [other for other in chosen if _overlap(other[0], each)]
            inside = [other for other in over if _contains(each, other[0])]
            if len(inside) < len(over):
                continue
            markdown = self.markdown(each, asked)
            cost = count_tokens(markdown) + overhead
            refund = sum(other[2] for other in inside)
            if cost > room + refund or markdown in said:
                continue
            said.add(markdown)
            place = chosen.index(inside[0]) if inside else len(chosen)
            chosen = [other for other in chosen if other not in inside]
            chosen.insert(place, (each, markdown, cost))
            room += refund - cost
            if room < LEAST_ROOM:
                break
        return [Chosen(each.text, each.excerpt.kind, markdown, each.share) for each, markdown, _ in chosen]

    def markdown(self, found: Found, asked: Asked) -> str:
        """Return an excerpt as Markdown, below its heading where that says what it does not."""
        read = self._read[found.text]
        return read.text.markdown(found.excerpt, heading=read.needs_heading(found.excerpt, asked))

    def start(self, found: Found) -> int:
        """Return where an excerpt begins in its text."""
        return self._read[found.text].text.parsed.sentence(found.excerpt.own[0]).start

    def says(self, found: Found) -> str:
        """Return the text of an excerpt, without its lead-in."""
        return self._read[found.text].says(found.excerpt)

    def _with_families(self, asked: Asked) -> Asked:
        """Return what is asked with the words of the texts that are of the same family or nearly spelt alike."""
        wanted: dict[str, Mapping[str, float]] = {}
        for term, said in asked.terms.items():
            like = {word: FAMILY for word in self._vocabulary.get(term[:FAMILY_LETTERS], ()) if is_family(term, word)}
            if not like and not any(read.text.parsed.occurrences.get(term) for read in self._read):
                like = {word: MISSPELT for word in self._vocabulary.get(term[:2], ()) if is_misspelt(term, word)}
            wanted[term] = {**like, **said}
        return asked._replace(terms=wanted)

    @cached_property
    def _vocabulary(self) -> Mapping[str, Collection[str]]:
        """The words of the texts by their first two and first five letters."""
        words: defaultdict[str, set[str]] = defaultdict(set)
        for word in {word for read in self._read for word in read.text.parsed.occurrences}:
            if len(word) >= FAMILY_LETTERS:
                words[word[:2]].add(word)
                words[word[:FAMILY_LETTERS]].add(word)
        return words

    def _worth(self, asked: Asked) -> dict[str, float]:
        """Return the idf of each of the question's terms among the units."""
        return {
            term: weight * math.log(1 + (self._units - held + 0.5) / (held + 0.5))
            for term, weight in asked.weights.items()
            for held in [sum(read.units_with(term) for read in self._read)]
        }


def _overlap(a: Found, b: Found) -> bool:
    return a.text == b.text and a.excerpt.units.start < b.excerpt.units.stop and b.excerpt.units.start < a.excerpt.units.stop


def _contains(a: Found, b: Found) -> bool:
    return a.excerpt.units.start <= b.excerpt.units.start and b.excerpt.units.stop <= a.excerpt.units.stop


class _Text:
    """A text as the ranking sees it."""

    def __init__(self, passage: Passage) -> None:
        self.text = ReadText(passage.text)
        self._title = Counter(terms(passage.title))
        self._unit_of = {n: i for i, unit in enumerate(self.text.units) for n in unit.own}
        self._excerpts_of: dict[int, list[int]] = defaultdict(list)  # by unit
        for i, excerpt in enumerate(self.text.excerpts):
            for unit in excerpt.units:
                self._excerpts_of[unit].append(i)

    def units_with(self, term: str) -> int:
        found = self.text.parsed.occurrences.get(term, ())
        return len({self._unit_of[n] for n in found if n in self._unit_of})

    def holding(self, asked: Asked) -> list[Excerpt]:
        occurrences = self.text.parsed.occurrences
        held = {n for said in asked.terms.values() for term in said for n in occurrences.get(term, ())}
        units = {self._unit_of[n] for n in held if n in self._unit_of}
        return [self.text.excerpts[i] for i in sorted({i for unit in units for i in self._excerpts_of[unit]})]

    def length(self, excerpt: Excerpt) -> int:
        return self.text.parsed.length(excerpt.own)

    def says(self, excerpt: Excerpt) -> str:
        first, last = (self.text.parsed.sentence(n) for n in (excerpt.own[0], excerpt.own[-1]))
        return self.text.text[first.start : last.end]

    def counts(self, excerpt: Excerpt, asked: Asked) -> dict[str, float]:
        """Return how often an excerpt has each term of the question, in all fields, weighted."""
        fields = [(excerpt.own, OWN), (excerpt.lead, LEAD)]
        fields += [(range(n, n + 1), HEADING if n == excerpt.headings[-1] else UPPER_HEADING) for n in excerpt.headings]
        if len(excerpt.units) == 1:
            fields += [(own, NEIGHBOUR) for own in self._beside(excerpt)]
        counts: dict[str, float] = {}
        for term, said in asked.terms.items():
            count = 0.0
            for word, weight in said.items():
                found = self.text.parsed.occurrences.get(word, ())
                if found:
                    count += weight * sum(factor * _between(found, own) for own, factor in fields if own)
                count += weight * TITLE * self._title[word]
            if count:
                counts[term] = count
        return counts

    def _beside(self, excerpt: Excerpt) -> list[range]:
        number = excerpt.units[0]
        group = self.text.units[number].group
        near = (self.text.units[n] for n in (number - 1, number + 1) if 0 <= n < len(self.text.units))
        return [unit.own for unit in near if unit.group == group]

    def pairs(self, excerpt: Excerpt, asked: Asked) -> set[tuple[str, str]]:
        if not asked.pairs:
            return set()
        return {pair for n in excerpt.own for pair in asked.pairs.intersection(pairwise(self.text.parsed.terms(n)))}

    def only_points(self, excerpt: Excerpt) -> bool:
        """Whether an excerpt is nothing but links."""
        says = self.says(excerpt)
        return "](" in says and not _WORD.search(_LINK.sub("", says))

    def needs_heading(self, excerpt: Excerpt, asked: Asked) -> bool:
        """Whether the heading above says something of the question that the excerpt does not."""
        if not excerpt.headings:
            return False
        above = excerpt.headings[-1]
        occurrences = self.text.parsed.occurrences
        for said in asked.terms.values():
            found = [occurrences[word] for word in said if word in occurrences]
            told = any(_between(numbers, own) for numbers in found for own in (excerpt.own, excerpt.lead) if own)
            if not told and any(_between(numbers, range(above, above + 1)) for numbers in found):
                return True
        return False


def _between(numbers: Sequence[int], own: range) -> int:
    return bisect_left(numbers, own.stop) - bisect_left(numbers, own.start)
