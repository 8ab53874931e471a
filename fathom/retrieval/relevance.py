"""How relevant an excerpt is to a question: the one ranking of search, narrowing, notes and report.

BM25 with fields (Robertson, Zaragoza and Taylor, 2004): what an excerpt says, what introduces it, the headings above
it, its neighbours, and its document's title. A term that texts use in place of the question's counts in part. An
excerpt that holds the kind of thing that is asked for, and one that covers more of the question, are worth more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from fathom.retrieval.asked import Asked, defines, read_asked
from fathom.retrieval.excerpts import Excerpt
from fathom.retrieval.kinds import has_kind
from fathom.retrieval.quantities import states, without_quantities
from fathom.retrieval.ranked_text import RankedText
from fathom.retrieval.ranking import Passage
from fathom.retrieval.spelling import FAMILY_LETTERS, is_family, is_misspelt
from fathom.text.blocks import Kind, is_signature
from fathom.text.boilerplate import asks_of_orders, lacks_subject, points_elsewhere
from fathom.text.tokens import count_tokens

K1, B = 1.2, 0.4
SHORTEST = 12  # terms; shorter excerpts are not better
PAIR = 0.3  # worth of two of the question's terms side by side, as a share of what the two are worth
COVERED = 2.0  # factor on the share of the question that an excerpt holds, added to 1
POINTING = 0.5  # factor for an excerpt that is nothing but links or a signature, or refers to another place
SUBJECTLESS = 0.7  # factor for one that opens with its verb
FAMILY = 0.4  # weight of a word of the same family, such as "elasticity" for "elastic"
MISSPELT = 0.8  # weight of a word that differs from one that no text has by one letter
BOILERPLATE = 0.15  # factor for what only calls on the reader or repeats key words
ELSEWHERE = 0.4  # factor for texts that name nothing of what is asked about, where others have it in their titles
OF_KIND = 1.25  # factor for an excerpt with the kind of thing that is asked for
FEWEST = 100  # units: in a shorter text, what each of its lines says would be worth nothing
MOST_RANKED = 400
LEAST_ROOM = 10  # tokens: hardly any excerpt is shorter


class Found(NamedTuple):
    """An excerpt that bears on a question."""

    text: int  # index of its text
    excerpt: Excerpt
    score: float
    share: float  # of the question's terms, by worth, that it or its surroundings hold


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
        self._read = [RankedText(text) for text in texts]
        self._units = sum(len(read.text.units) for read in self._read)
        lengths = sum(read.text.parsed.length(unit.own) for read in self._read for unit in read.text.units)
        self._mean = lengths / (self._units or 1) or 1.0

    def rank(self, asked: Asked) -> list[Found]:
        """Return the excerpts that hold some term of a question, the best first; of equals the earlier one."""
        asked = self._with_families(asked)
        idf = self._worth(asked)
        total = sum(idf.values()) or 1.0
        about_orders = asks_of_orders(list(asked.weights))
        found: list[Found] = []
        for number, (read, place) in enumerate(zip(self._read, self._places(asked.names), strict=True)):
            for excerpt in read.holding(asked):
                if read.is_order(excerpt) and not about_orders:
                    continue
                counts = read.counts(excerpt, asked)
                norm = K1 * (1 - B + B * max(SHORTEST, read.length(excerpt)) / self._mean)
                score = sum(idf[term] * n * (K1 + 1) / (n + norm) for term, n in counts.items())
                score += PAIR * sum(idf[a] + idf[b] for a, b in read.pairs(excerpt, asked)) / 2
                share = sum(idf[term] * min(1.0, n) for term, n in counts.items()) / total
                score *= 1 + COVERED * share
                if asked.kind and has_kind(asked.kind, read.says(excerpt), asked.wording):
                    score *= OF_KIND
                if asked.definition > 1 and defines(read.says(excerpt), asked):
                    score *= asked.definition
                if excerpt.kind == "prose" and not excerpt.lead and lacks_subject(read.says(excerpt)):
                    score *= SUBJECTLESS
                if excerpt.kind == "code" and is_signature(read.says(excerpt)):
                    score *= POINTING
                if read.only_points(excerpt) or (len(excerpt.units) == 1 and points_elsewhere(read.says(excerpt))):
                    score *= POINTING
                if read.is_boilerplate(excerpt):
                    score, share = score * BOILERPLATE, share * BOILERPLATE
                found.append(Found(number, excerpt, round(score * place, 9), share * place))
        found.sort(key=lambda each: -each.score)
        return found

    def unmet(self, asked: Asked) -> float:
        """Return the share of a question's terms, by worth, that no text has, nor a word in their place."""
        asked = self._with_families(asked)
        worth = self._worth(asked)
        absent = (term for term, said in asked.terms.items() if not any(read.has(said) for read in self._read))
        return sum(worth[term] for term in absent) / (sum(worth.values()) or 1.0)

    def has(self, term: str, asked: Asked) -> bool:
        """Whether a text has a term of a question, or a word in its place."""
        said = self._with_families(asked).terms[term]
        return any(read.has(said) for read in self._read)

    def answers(self, found: Found, asked: Asked) -> bool:
        """Whether an excerpt has what an answer must hold: a number, a date or a name, where one is asked for."""
        if not (asked.kind and asked.kind.needed):
            return True
        stated = self._read[found.text].states(found.excerpt)
        if asked.quantities and not any(states(quantity, stated) for quantity in asked.quantities):
            stated = without_quantities(stated)
        return has_kind(asked.kind, stated, asked.wording)

    def _places(self, names: Sequence[frozenset[str]]) -> list[float]:
        """Return a factor for each text: less for one that names nothing that others have in their titles."""
        subjects = [name for name in names if any(read.is_titled(name) for read in self._read)]
        named = (any(all(read.has([term]) for term in name) for name in subjects) for read in self._read)
        return [1.0 if each or not subjects else ELSEWHERE for each in named]

    def choose(
        self, found: Sequence[Found], asked: Asked, max_tokens: int, *, overhead: int = 0, around: float = 0.0
    ) -> list[Chosen]:
        """Return the best excerpts that fit together, the best first, when each takes `overhead` tokens more.

        One that is part of a chosen one is passed over, and so is one whose sentences on the question others have said;
        one that contains chosen ones takes the place of the first, if its
        score is at least `around` of theirs.
        """
        chosen: list[tuple[Found, str, int]] = []
        said: set[str] = set()
        room = max_tokens
        for each in found[:MOST_RANKED]:
            over = [other for other in chosen if _overlap(other[0], each)]
            inside = [other for other in over if _contains(each, other[0])]
            if len(inside) < len(over) or any(each.score < around * other[0].score for other in inside):
                continue
            markdown = self.markdown(each, asked)
            cost = count_tokens(markdown) + overhead
            refund = sum(other[2] for other in inside)
            tells = self._read[each.text].tells(each.excerpt, asked)
            if cost > room + refund or (not inside and tells <= said):
                continue
            said |= tells
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
            term: weight * math.log(1 + (max(FEWEST, self._units) - held + 0.5) / (held + 0.5))
            for term, weight in asked.weights.items()
            for held in [sum(read.units_with(term) for read in self._read)]
        }


def _overlap(a: Found, b: Found) -> bool:
    return (
        a.text == b.text
        and a.excerpt.units.start < b.excerpt.units.stop
        and b.excerpt.units.start < a.excerpt.units.stop
    )


def _contains(a: Found, b: Found) -> bool:
    return a.excerpt.units.start <= b.excerpt.units.start and b.excerpt.units.stop <= a.excerpt.units.stop
