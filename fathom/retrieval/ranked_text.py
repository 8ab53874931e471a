"""A text as the ranking sees it: what each of its excerpts has of a question, in which field.

The ranking itself is in `fathom.retrieval.relevance`.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from heapq import nlargest
from itertools import pairwise, zip_longest
from typing import NamedTuple

from fathom.facts.code import without_code
from fathom.facts.extraction import facts_of
from fathom.facts.periods import Moment, days_in, in_periods, period_of_cells
from fathom.facts.ranges import Case, cases_of, cases_sought, in_range
from fathom.retrieval.asked import QuestionTerms
from fathom.retrieval.excerpts import Excerpt, ReadText, first_cell
from fathom.retrieval.expansion import AGE, AGES, DURATION, TIMES, is_quantity, states
from fathom.retrieval.kinds import has_kind
from fathom.retrieval.ranking import Passage, count_in
from fathom.text.blocks import is_signature
from fathom.text.boilerplate import (
    asks_of_letters,
    is_boilerplate,
    lacks_subject,
    letterhead,
    orders,
    points_elsewhere,
    says_nothing,
)
from fathom.text.parsed import KeptTexts
from fathom.text.tables import cells_of_row
from fathom.text.terms import terms

KEPT_CHARS = 1_000_000  # characters of the texts whose excerpts are kept; these take 8 bytes a character
SUBJECTLESS = 0.7  # factor for one that opens with its verb
POINTING = 0.5  # factor for an excerpt that is nothing but links or a signature, or refers to another place
BESIDE_ITEM = 4  # items before and behind one that may say its unit
FEWEST_LISTED = 2  # rows or items, with their header, of a list
MOST_INSTEAD = 2.0  # times that another word counts for a term
OWN, LEAD, HEADING, UPPER_HEADING, TITLE, NEIGHBOUR = 1.0, 0.6, 0.8, 0.4, 0.6, 0.25  # weights of the fields

_LINK = re.compile(r"\[[^\[\]]*\]\([^()\s]*\)")
_WORD = re.compile(r"\w{2}")
_PARENTHESIS = re.compile(r"\s*\([^)]*\)")


class SoughtWord(NamedTuple):
    """A word in the place of a term of a question."""

    weight: float
    titled: float  # what the title has of it
    found: Sequence[int]  # its sentences
    is_term: bool
    is_quantity: bool


_VALUE_OF = re.compile(
    r"(?:\b(?:is|are|was|were|costs?|of|at|to|by|than|about|around|over|nearly|ist|sind|war|kostet|von|auf)|[:=(])\s*\Z"
)
_FIRST_PERSON = re.compile(r"\b(?:I|[Ii]ch|[Jj]e)\b")

Sought = Mapping[str, Sequence[SoughtWord]]
"""The words that texts may have for each term of a question."""


class RankedText:
    """A text as the ranking sees it."""

    def __init__(self, passage: Passage) -> None:
        self.text = ReadText(passage.text)
        self._title = Counter(terms(passage.title))
        name = frozenset(terms(_PARENTHESIS.sub("", passage.title) or passage.title))
        self.name = name if any(len(term) > 2 for term in name) else frozenset[str]()
        """The terms of its title without what a parenthesis explains; none if it is too short to be found by them."""
        self._quantities: dict[str, list[int]] = {}
        self._ranges: dict[tuple[int, tuple[Case, ...]], bool | None] = {}  # by sentence and cases
        self._orders = orders(self.text.parsed)
        self._letterhead = letterhead(self.text.parsed)
        self._unit_of = array("i", [-1]) * len(self.text.parsed)  # of each sentence, if it is in one
        for i, unit in enumerate(self.text.units):
            for n in unit.own:
                self._unit_of[n] = i
        self._wanting: dict[range, tuple[float, ...]] = {}  # by the units of an excerpt
        self._boilerplate: dict[int, bool] = {}  # by sentence
        self._codes: dict[tuple[str, ...], frozenset[int]] = {}  # the sentences that have them

    @cached_property
    def _excerpts_of(self) -> Mapping[int, Sequence[int]]:
        """The indexes of the excerpts that have a unit, by its number."""
        found: dict[int, list[int]] = defaultdict(list)
        for i, excerpt in enumerate(self.text.excerpts):
            for unit in excerpt.units:
                found[unit].append(i)
        return found

    def _occurrences(self, term: str) -> Sequence[int]:
        """Return the numbers of the sentences that have a term, or state a quantity or range of a kind, in order."""
        cases = cases_sought(term)
        if not (cases or is_quantity(term)):
            return self.text.parsed.occurrences.get(term, ())
        if term not in self._quantities:
            self._quantities[term] = [
                n
                for n, sentence in enumerate(map(self.text.parsed.sentence, range(len(self.text.parsed.kinds))))
                if (self.in_range(n, cases) if cases else states(term, sentence.text))
            ]
        return self._quantities[term]

    def _units_with(self, term: str) -> set[int]:
        return {self._unit_of[n] for n in self._occurrences(term)} - {-1}

    def units_with(self, term: str) -> int:
        """Return how many units have a term."""
        return len(self._units_with(term))

    def has(self, words: Iterable[str]) -> bool:
        """Whether the text or its title has one of some terms."""
        return any(self._title[word] or self._occurrences(word) for word in words)

    def has_code(self, code: tuple[str, ...], excerpt: Excerpt | None = None) -> bool:
        """Whether the title, or a sentence of the text or of an excerpt and above it, has two terms side by side."""
        if code not in self._codes:
            held = (self.text.parsed.occurrences.get(term, ()) for term in code)
            near = frozenset.intersection(*map(frozenset, held))
            self._codes[code] = frozenset(
                n for n in near if any(code == pair for pair in pairwise(self.text.parsed.terms(n)))
            )
        found = self._codes[code]
        places = (*excerpt.own, *excerpt.lead, *excerpt.headings) if excerpt else found
        return self.is_titled(code) or not found.isdisjoint(places)

    def mentions(self, name: Iterable[str]) -> bool:
        """Whether a sentence has all terms of a name."""
        held = [frozenset(self.text.parsed.occurrences.get(term, ())) for term in name]
        return bool(held) and bool(frozenset.intersection(*held))

    def is_titled(self, name: Iterable[str]) -> bool:
        """Whether the title has all terms of a name."""
        return all(self._title[term] for term in name)

    def holding(self, asked: QuestionTerms) -> list[Excerpt]:
        """Return the excerpts that have a term of the question, or one that is used in its place."""
        units = {unit for said in asked.terms.values() for term in said for unit in self._units_with(term)}
        return [self.text.excerpts[i] for i in sorted({i for unit in units for i in self._excerpts_of[unit]})]

    def best_units(self, asked: QuestionTerms, idf: Mapping[str, float], most: int) -> list[Excerpt]:
        """Return at most so many units, each as an excerpt: those with most of the question's terms, by worth."""
        held: defaultdict[int, float] = defaultdict(float)
        for term, said in asked.terms.items():
            for word, weight in said.items():
                for unit in self._units_with(word):
                    held[unit] += idf[term] * weight
        return [self.text.alone(unit) for unit in nlargest(most, sorted(held), key=held.__getitem__)]

    def length(self, excerpt: Excerpt) -> int:
        """Return how many terms an excerpt has."""
        return self.text.parsed.length(excerpt.own)

    def says(self, excerpt: Excerpt) -> str:
        """Return the text of an excerpt, without its lead-in."""
        first, last = (self.text.parsed.sentence(n) for n in (excerpt.own[0], excerpt.own[-1]))
        return self.text.text[first.start : last.end]

    def states(self, excerpt: Excerpt, asked: QuestionTerms) -> str:
        """Return the sentences of an excerpt that state something: no title, question or boilerplate.

        Where the writer of a mail says "I", they have the writer's name.
        """
        own = [self.text.parsed.sentence(n).text for n in excerpt.own if not self._is_boilerplate(n, asked)]
        stated = [text for text in own if not text.startswith("# ") and not text.rstrip().endswith("?")]
        return "\n".join([*stated, *self._writer] if any(map(_FIRST_PERSON.search, stated)) else stated)

    @cached_property
    def _writer(self) -> list[str]:
        """The field of a mail with the name of who wrote it; nothing of other texts."""
        return [self.text.parsed.sentence(n).text for n, name in self._letterhead.items() if name == "From"][:1]

    def tells(self, excerpt: Excerpt, asked: QuestionTerms) -> set[str]:
        """Return the sentences, rows or items of an excerpt that have a term of the question; else all of them."""
        parsed = self.text.parsed
        said = {term for instead in asked.terms.values() for term in instead}
        telling = [n for n in excerpt.own if not said.isdisjoint(parsed.terms(n))] or excerpt.own
        return {" ".join(parsed.sentence(n).text.split()) for n in telling}

    def sought(self, asked: QuestionTerms) -> Sought:
        """Return, for each term of the question, the words in its place that the text or its title has."""
        return {
            term: [
                SoughtWord(weight, TITLE * self._title[word], found, word == term, is_quantity(word))
                for word, weight in said.items()
                if (found := self._occurrences(word)) or word in self._title
            ]
            for term, said in asked.terms.items()
        }

    def counts(self, excerpt: Excerpt, sought: Sought) -> dict[str, float]:
        """Return how often an excerpt has each term of the question, in all fields, weighted."""
        fields = [(excerpt.own, OWN), (excerpt.lead, LEAD)]
        fields += [(range(n, n + 1), HEADING if n == excerpt.headings[-1] else UPPER_HEADING) for n in excerpt.headings]
        if len(excerpt.units) == 1:
            fields += [(own, NEIGHBOUR) for own in self._beside(excerpt)]
        counts: dict[str, float] = {}
        for term, words in sought.items():
            count = instead = 0.0
            for weight, titled, found, is_term, _ in words:
                held = titled
                if found:
                    held += sum(factor * count_in(found, own) for own, factor in fields if own)
                if is_term:
                    count += held
                else:
                    instead = max(instead, weight * min(MOST_INSTEAD, held))
            count += instead
            if count:
                counts[term] = count
        return counts

    def held_in_lines(self, excerpt: Excerpt, asked: QuestionTerms) -> Iterator[dict[str, float]]:
        """Yield what each sentence of an excerpt with its lead-in, and each heading above, holds of the terms."""
        sought = self.sought(asked)
        lines = [[range(n, n + 1), excerpt.lead] for n in excerpt.own]
        for line in [*lines, *([range(n, n + 1)] for n in excerpt.headings)]:
            yield _held_in(line, sought)

    def held_by_numbers(self, excerpt: Excerpt, asked: QuestionTerms) -> Iterator[dict[str, float]]:
        """Yield what each sentence with a number that may be asked for, and what is around it, holds of the terms.

        That is the paragraph, or the row or item, and all above it; of code, or beside a bare number, only the line. A
        number without the unit that is asked for counts nothing else ("three questions" are no people), and is a
        duration only where a unit of time stands above it, or in the name of its field, and an age where one is named.
        """
        sought, parsed = self.sought(asked), self.text.parsed
        quantities = asked.quantities & {AGE} or asked.quantities  # a year alone tells no age
        above = [excerpt.lead, *(range(n, n + 1) for n in excerpt.headings)]
        for n in excerpt.own:
            kind, text = parsed.kinds[n], parsed.sentence(n).text
            undated = text if AGE in asked.quantities else facts_of(text).undated  # but one of birth does
            line = [excerpt.own if kind == "prose" else range(n, n + 1), *(() if kind == "code" else above)]
            if not has_kind(asked.kind, undated, asked.wording):
                continue
            if quantities and not any(states(each, undated) for each in quantities):
                near = {term for own in line for each in own for term in parsed.terms(each)}
                if not self._states_bare(text, asked, near, listed=kind in ("item", "table")):
                    continue
                line = [range(n, n + 1)] if kind == "prose" else line
            held = _held_in(line, sought)
            if kind != "code":
                titled = (term for term, words in sought.items() if any(word.titled for word in words))
                held |= {term: 1.0 for term in titled if len(line) > 1 or term != asked.attribute}
            yield held

    def _states_bare(self, text: str, asked: QuestionTerms, near: Collection[str], *, listed: bool) -> bool:
        """Whether a sentence has a number without a unit that may be the quantity that is asked for.

        `near` are its terms, and the terms of what stands above it.
        """
        if DURATION in asked.quantities:
            counted = (each.counted[-1:] for each in facts_of(text).numbers if not each.unit)
            return not TIMES.isdisjoint(near) and any(map(TIMES.issuperset, counted))
        if AGE in asked.quantities and (listed or AGES.isdisjoint(near)):
            return not AGES.isdisjoint(near)
        said = facts_of(without_code(text))
        bare = (each for each in said.numbers if not (each.unit or each.counted))
        return any(listed or _VALUE_OF.search(said.text[: each.start]) for each in bare)

    def is_bare(self, excerpt: Excerpt, sought: Sought) -> bool:
        """Whether an excerpt is rows without a word of the question, which is not all in their header either.

        A row of prices has the money that is asked for, whatever it is the price of.
        """
        if excerpt.kind != "table" or any(count_in(word.found, excerpt.own) for word in _words(sought)):
            return False
        above = [excerpt.lead, *(range(n, n + 1) for n in excerpt.headings)]
        return any(
            not any(
                word.is_quantity or word.titled or any(count_in(word.found, own) for own in above) for word in words
            )
            for words in sought.values()
        )

    def _beside(self, excerpt: Excerpt) -> list[range]:
        number = excerpt.units[0]
        group = self.text.units[number].group
        near = (self.text.units[n] for n in (number - 1, number + 1) if 0 <= n < len(self.text.units))
        return [unit.own for unit in near if unit.group == group]

    def pairs(self, excerpt: Excerpt, asked: QuestionTerms) -> set[tuple[str, str]]:
        """Return the pairs of the question's neighbouring terms that are neighbours in an excerpt."""
        if not asked.pairs:
            return set()
        return {pair for n in excerpt.own for pair in asked.pairs.intersection(pairwise(self.text.parsed.terms(n)))}

    def is_named(self, excerpt: Excerpt, names: Collection[str]) -> bool:
        """Whether an excerpt is a row whose first cell has no words but those by which a question may name it."""
        if excerpt.kind != "table" or len(excerpt.units) > 1:
            return False
        first = set(terms(first_cell(self.says(excerpt))))
        return bool(first) and first.issubset(names)

    def table_of(self, excerpt: Excerpt) -> int | None:
        """Return the group of the table whose rows an excerpt has; None if it has none."""
        return self.text.units[excerpt.units[-1]].group if excerpt.kind == "table" else None

    def asked_row(self, group: int, asked: QuestionTerms) -> range | None:
        """Return the one row of a table that a question means; it takes a look at all of them.

        Its first cell has more of the question's words than any other first cell, theirs among them, and so has the
        whole row; or else only its range has an amount or time that the question gives.
        """
        units = [unit for unit in self.text.units if unit.group == group and unit.kind == "table"]
        rows = [unit.own for unit in units if units[0].own == unit.lead]
        cases = cases_of(asked.wording)
        holding = [row for row in rows if self.in_range(row[0], cases)] if cases else []
        return self._named_row(rows, asked) or (holding[0] if len(holding) == 1 else self._named_row(holding, asked))

    def _named_row(self, rows: Sequence[range], asked: QuestionTerms) -> range | None:
        named = [self._held(first_cell(self.text.parsed.sentence(row[0]).text), asked) for row in rows]
        most = max(range(len(rows)), key=lambda n: len(named[n]), default=-1)
        whole = [self._held(self.text.parsed.sentence(row[0]).text, asked) for row in rows]
        others = (n for n in range(len(rows)) if n != most)
        is_one = rows and all(named[n] < named[most] and whole[n] < whole[most] for n in others)
        return rows[most] if is_one else None

    def in_range(self, number: int, cases: tuple[Case, ...]) -> bool | None:
        """Whether a sentence, row or item states a range with one of some amounts or times; None if none is comparable.

        A unit that stands only in a table's header, or in another item of the list, holds for all of it.
        """
        key = number, cases
        if key not in self._ranges:
            self._ranges[key] = self._in_range(*key)
        return self._ranges[key]

    def _in_range(self, number: int, cases: tuple[Case, ...]) -> bool | None:
        parsed = self.text.parsed
        says, at = parsed.sentence(number).text, self._unit_of[number]
        if at < 0:
            return None
        unit = self.text.units[at]
        if unit.kind != "table" or not unit.lead:
            beside = self.text.units[max(0, at - BESIDE_ITEM) : at + BESIDE_ITEM + 1] if unit.kind == "item" else ()
            around = [n for each in beside if each.headings == unit.headings for n in each.own]
            return in_range(cases, says, " ".join(parsed.sentence(n).text for n in (*unit.lead, *around)))
        cells, names = (cells_of_row(text) for text in (says, parsed.sentence(unit.lead[0]).text))
        moments = [case for case in cases if isinstance(case, Moment)]
        if moments and (period := period_of_cells(cells, names)):
            return in_periods(moments, [period])
        compared = [in_range(cases, *pair) for pair in zip_longest(cells, names, fillvalue="")]
        held = [each for each in compared if each is not None]
        return any(held) if held else None

    def _held(self, text: str, asked: QuestionTerms) -> set[str]:
        """Return the terms of a question that a text has, or others in their place; not the day of a date."""
        said = set(terms(text)) - days_in(asked.wording)
        return {term for term, words in asked.terms.items() if not said.isdisjoint(words)}

    def is_announced(self, excerpt: Excerpt, wording: Collection[str]) -> bool:
        """Whether an excerpt is a list or table below a heading that has no words but the question's."""
        if excerpt.kind not in ("item", "table") or len(excerpt.units) < FEWEST_LISTED:
            return False
        opens = self.text.parsed.kinds[excerpt.own.start] == "heading"
        above = (excerpt.own.start,) if opens else excerpt.headings[-1:]
        heading = {term for n in above for term in self.text.parsed.terms(n) if not term.isdigit()}
        return bool(heading) and heading.issubset(wording)

    def asks(self, excerpt: Excerpt, sought: Sought) -> dict[str, float]:
        """Return what a question that an excerpt answers, its heading, lead-in or first line, has of each term."""
        if excerpt.own[-1] in self._questions:
            return {}
        first = [excerpt.own.start] if len(excerpt.units) > 1 else []
        asking = [n for n in (*excerpt.lead, *excerpt.headings[-1:], *first) if n in self._questions]
        return _held_in([range(n, n + 1) for n in asking], sought) if asking else {}

    @cached_property
    def _questions(self) -> Collection[int]:
        """The numbers of the sentences that are questions."""
        parsed = self.text.parsed
        return {n for n in range(len(parsed.kinds)) if parsed.sentence(n).text.rstrip(" *_").endswith("?")}

    def is_order(self, excerpt: Excerpt) -> bool:
        """Whether a paragraph of an excerpt gives orders to a language model."""
        return bool(self._orders) and any(self.text.parsed.paragraphs[n] in self._orders for n in excerpt.own)

    def is_boilerplate(self, excerpt: Excerpt, asked: QuestionTerms) -> bool:
        """Whether half of an excerpt's sentences only call on the reader, repeat key words, or frame a letter."""
        return 2 * sum(self._is_boilerplate(number, asked) for number in excerpt.own) >= len(excerpt.own)

    def _is_boilerplate(self, number: int, asked: QuestionTerms) -> bool:
        if number in self._letterhead:
            return not asks_of_letters(asked.weights)
        parsed = self.text.parsed
        if number not in self._boilerplate:
            text = parsed.sentence(number).text
            is_prose = parsed.kinds[number] == "prose"
            self._boilerplate[number] = is_prose and (says_nothing(text) or is_boilerplate(text, parsed.terms(number)))
        return self._boilerplate[number]

    def wanting(self, excerpt: Excerpt) -> tuple[float, ...]:
        """Return factors for what an excerpt lacks, whatever is asked."""
        if excerpt.units not in self._wanting:
            says = self.says(excerpt)
            only_links = "](" in says and not _WORD.search(_LINK.sub("", says))
            lacks = excerpt.kind == "prose" and not excerpt.lead and lacks_subject(says)
            signs = excerpt.kind == "code" and is_signature(says)
            points = only_links or (len(excerpt.units) == 1 and points_elsewhere(says))
            self._wanting[excerpt.units] = (SUBJECTLESS,) * lacks + (POINTING,) * (signs + points)
        return self._wanting[excerpt.units]

    def stands_by(self, term: str, excerpt: Excerpt) -> bool:
        """Whether an excerpt, what stands above it or the title has a term."""
        places = {*excerpt.own, *excerpt.lead, *excerpt.headings}
        return bool(self._title[term]) or not places.isdisjoint(self._occurrences(term))

    def in_context(self, excerpt: Excerpt) -> str:
        """Return an excerpt with its lead-in, behind all headings above it."""
        above = [self.text.parsed.sentence(number).clean.strip("#*= ") for number in excerpt.headings]
        return f"{' > '.join(above)}: {self.text.markdown(excerpt, heading=False)}"

    def heading(self, excerpt: Excerpt) -> str:
        """Return the heading above an excerpt; empty without one."""
        return self.text.parsed.sentence(excerpt.headings[-1]).clean if excerpt.headings else ""

    def needs_heading(self, excerpt: Excerpt, asked: QuestionTerms) -> bool:
        """Whether the heading above says something of the question that the excerpt does not."""
        if not excerpt.headings:
            return False
        above = excerpt.headings[-1]
        for said in asked.terms.values():
            found = [numbers for word in said if (numbers := self._occurrences(word))]
            told = any(count_in(numbers, own) for numbers in found for own in (excerpt.own, excerpt.lead) if own)
            if not told and any(count_in(numbers, range(above, above + 1)) for numbers in found):
                return True
        return False


def _held_in(line: Iterable[range], sought: Sought) -> dict[str, float]:
    """Return how much of each term of a question some sentences have."""
    places = list(line)
    return {
        term: max((word.weight for word in words if any(count_in(word.found, own) for own in places)), default=0.0)
        for term, words in sought.items()
    }


def _words(sought: Sought) -> Iterator[SoughtWord]:
    return (word for words in sought.values() for word in words if not word.is_quantity)


_kept = KeptTexts[Passage, RankedText](KEPT_CHARS)


def ranked_text(passage: Passage) -> RankedText:
    """Return a text as the ranking sees it; the texts that were asked for last are kept."""
    return _kept.get(passage, partial(RankedText, passage))
