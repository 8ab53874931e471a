"""A text as the ranking sees it: how often each excerpt has the terms of a question, in each of its fields."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from fathom.retrieval.asked import Asked
from fathom.retrieval.excerpts import Excerpt, ReadText
from fathom.retrieval.quantities import is_quantity, states
from fathom.retrieval.ranking import Passage
from fathom.text.boilerplate import is_boilerplate, orders
from fathom.text.terms import terms

MOST_INSTEAD = 2.0  # times that another word counts for a term
OWN, LEAD, HEADING, UPPER_HEADING, TITLE, NEIGHBOUR = 1.0, 0.6, 0.8, 0.4, 0.6, 0.25  # weights of the fields

_LINK = re.compile(r"\[[^\[\]]*\]\([^()\s]*\)")
_WORD = re.compile(r"\w{2}")


class RankedText:
    """A text as the ranking sees it."""

    def __init__(self, passage: Passage) -> None:
        self.text = ReadText(passage.text)
        self._title = Counter(terms(passage.title))
        self._quantities: dict[str, list[int]] = {}
        self._orders = orders(self.text.parsed)
        self._unit_of = {n: i for i, unit in enumerate(self.text.units) for n in unit.own}
        self._excerpts_of: dict[int, list[int]] = defaultdict(list)  # by unit
        for i, excerpt in enumerate(self.text.excerpts):
            for unit in excerpt.units:
                self._excerpts_of[unit].append(i)

    def _occurrences(self, term: str) -> Sequence[int]:
        """Return the numbers of the sentences that have a term or state a quantity, in order."""
        if not is_quantity(term):
            return self.text.parsed.occurrences.get(term, ())
        if term not in self._quantities:
            count = range(len(self.text.parsed.kinds))
            self._quantities[term] = [n for n in count if states(term, self.text.parsed.sentence(n).text)]
        return self._quantities[term]

    def units_with(self, term: str) -> int:
        """Return how many units have a term."""
        found = self._occurrences(term)
        return len({self._unit_of[n] for n in found if n in self._unit_of})

    def has(self, words: Iterable[str]) -> bool:
        """Whether the text or its title has one of some terms."""
        return any(self._title[word] or self._occurrences(word) for word in words)

    def is_titled(self, name: Iterable[str]) -> bool:
        """Whether the title has all terms of a name."""
        return all(self._title[term] for term in name)

    def holding(self, asked: Asked) -> list[Excerpt]:
        """Return the excerpts that have a term of the question, or one that is used in its place."""
        held = {n for said in asked.terms.values() for term in said for n in self._occurrences(term)}
        units = {self._unit_of[n] for n in held if n in self._unit_of}
        return [self.text.excerpts[i] for i in sorted({i for unit in units for i in self._excerpts_of[unit]})]

    def length(self, excerpt: Excerpt) -> int:
        """Return how many terms an excerpt has."""
        return self.text.parsed.length(excerpt.own)

    def says(self, excerpt: Excerpt) -> str:
        """Return the text of an excerpt, without its lead-in."""
        first, last = (self.text.parsed.sentence(n) for n in (excerpt.own[0], excerpt.own[-1]))
        return self.text.text[first.start : last.end]

    def states(self, excerpt: Excerpt) -> str:
        """Return the sentences of an excerpt that state something: no title, question or boilerplate."""
        own = [self.text.parsed.sentence(n).text for n in excerpt.own if not self._is_boilerplate(n)]
        return "\n".join(text for text in own if not text.startswith("# ") and not text.rstrip().endswith("?"))

    def tells(self, excerpt: Excerpt, asked: Asked) -> set[str]:
        """Return the sentences, rows or items of an excerpt that have a term of the question; else all of them."""
        parsed = self.text.parsed
        said = {term for instead in asked.terms.values() for term in instead}
        telling = [n for n in excerpt.own if not said.isdisjoint(parsed.terms(n))] or excerpt.own
        return {" ".join(parsed.sentence(n).text.split()) for n in telling}

    def counts(self, excerpt: Excerpt, asked: Asked) -> dict[str, float]:
        """Return how often an excerpt has each term of the question, in all fields, weighted."""
        fields = [(excerpt.own, OWN), (excerpt.lead, LEAD)]
        fields += [(range(n, n + 1), HEADING if n == excerpt.headings[-1] else UPPER_HEADING) for n in excerpt.headings]
        if len(excerpt.units) == 1:
            fields += [(own, NEIGHBOUR) for own in self._beside(excerpt)]
        counts: dict[str, float] = {}
        for term, said in asked.terms.items():
            count = instead = 0.0
            for word, weight in said.items():
                found = self._occurrences(word)
                held = TITLE * self._title[word]
                if found:
                    held += sum(factor * _between(found, own) for own, factor in fields if own)
                if word == term:
                    count += held
                else:
                    instead = max(instead, weight * min(MOST_INSTEAD, held))
            count += instead
            if count:
                counts[term] = count
        return counts

    def _beside(self, excerpt: Excerpt) -> list[range]:
        number = excerpt.units[0]
        group = self.text.units[number].group
        near = (self.text.units[n] for n in (number - 1, number + 1) if 0 <= n < len(self.text.units))
        return [unit.own for unit in near if unit.group == group]

    def pairs(self, excerpt: Excerpt, asked: Asked) -> set[tuple[str, str]]:
        """Return the pairs of the question's neighbouring terms that are neighbours in an excerpt."""
        if not asked.pairs:
            return set()
        return {pair for n in excerpt.own for pair in asked.pairs.intersection(pairwise(self.text.parsed.terms(n)))}

    def is_order(self, excerpt: Excerpt) -> bool:
        """Whether a paragraph of an excerpt gives orders to a language model."""
        return bool(self._orders) and any(self.text.parsed.paragraphs[n] in self._orders for n in excerpt.own)

    def is_boilerplate(self, excerpt: Excerpt) -> bool:
        """Whether half of an excerpt's sentences only call on the reader or repeat key words."""
        return 2 * sum(map(self._is_boilerplate, excerpt.own)) >= len(excerpt.own)

    def _is_boilerplate(self, number: int) -> bool:
        parsed = self.text.parsed
        return parsed.kinds[number] == "prose" and is_boilerplate(parsed.sentence(number).text, parsed.terms(number))

    def only_points(self, excerpt: Excerpt) -> bool:
        """Whether an excerpt is nothing but links."""
        says = self.says(excerpt)
        return "](" in says and not _WORD.search(_LINK.sub("", says))

    def needs_heading(self, excerpt: Excerpt, asked: Asked) -> bool:
        """Whether the heading above says something of the question that the excerpt does not."""
        if not excerpt.headings:
            return False
        above = excerpt.headings[-1]
        for said in asked.terms.values():
            found = [numbers for word in said if (numbers := self._occurrences(word))]
            told = any(_between(numbers, own) for numbers in found for own in (excerpt.own, excerpt.lead) if own)
            if not told and any(_between(numbers, range(above, above + 1)) for numbers in found):
                return True
        return False


def _between(numbers: Sequence[int], own: range) -> int:
    return bisect_left(numbers, own.stop) - bisect_left(numbers, own.start)
