"""How relevant an excerpt is to a question: the one ranking of search, narrowing, notes and report.

BM25 with fields (Robertson, Zaragoza and Taylor, 2004): what an excerpt says, what introduces it, the headings above
it, its neighbours, and its document's title. A term that texts use in place of the question's counts in part. An
excerpt that holds the kind of thing that is asked for, and one that covers more of the question, are worth more.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

from fathom.retrieval.asked import QuestionTerms, defines, has_kind, read_asked
from fathom.retrieval.excerpts import Excerpt, ReadText, first_cell
from fathom.retrieval.expansion import FAMILY_LETTERS, is_family, is_misspelt, is_quantity, states, without_quantities
from fathom.retrieval.ranking import Passage
from fathom.text.blocks import Kind, is_signature
from fathom.text.boilerplate import asks_of_orders, is_boilerplate, lacks_subject, orders, points_elsewhere
from fathom.text.parsed import KeptTexts
from fathom.text.terms import terms
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
BRIDGE = 0.8  # of the best text's score, that a text gains whose title the question or another of the best texts has
LEADING = 5  # best texts, from which a bridge may lead
ELSEWHERE = 0.4  # factor for texts that name nothing of what is asked about, where others have it in their titles
NAMED = 1.5  # factor for a row whose first cell the question names
OF_KIND = 1.25  # factor for an excerpt with the kind of thing that is asked for
FEWEST = 100  # units: in a shorter text, what each of its lines says would be worth nothing
MOST_RANKED = 400
LEAST_ROOM = 10  # tokens: hardly any excerpt is shorter
KEPT_CHARS = 1_000_000  # characters of the texts whose excerpts are kept; these take 8 bytes a character


class Found(NamedTuple):
    """An excerpt that bears on a question."""

    text: int  # index of its text
    excerpt: Excerpt
    score: float
    share: float  # of the question's terms, by worth, that it or its surroundings hold
    before: float | None = None  # its score before it was moved, as what replaces others is

    @property
    def own(self) -> float:
        """Its score by what it says, wherever it was moved."""
        return self.score if self.before is None else self.before


class Chosen(NamedTuple):
    """A chosen excerpt as Markdown."""

    text: int  # index of its text
    kind: Kind
    markdown: str
    share: float
    score: float = 0.0
    section: int = 0  # number of the sentence that is the heading above it
    start: int = 0  # number of its first sentence


class ExcerptPlace(NamedTuple):
    """Where a text has an excerpt, and how relevant that is."""

    start: int
    score: float


def best_places(question: str, texts: Sequence[Passage]) -> dict[int, list[ExcerptPlace]]:
    """Return by text the places of its excerpts that bear on a question, the best first; other texts are left out."""
    evidence, places = RankedExcerpts(texts), defaultdict[int, list[ExcerptPlace]](list)
    for found in evidence.rank(read_asked(question)):
        places[found.text].append(ExcerptPlace(evidence.start(found), found.score))
    return dict(places)


class RankedExcerpts:
    """The excerpts of some texts, to be ranked by questions."""

    def __init__(self, texts: Sequence[Passage]) -> None:
        self.passages = texts
        self._read = [_kept.get(text, partial(RankedText, text)) for text in texts]
        self._units = sum(len(read.text.units) for read in self._read)
        lengths = sum(read.text.parsed.length(unit.own) for read in self._read for unit in read.text.units)
        self._mean = lengths / (self._units or 1) or 1.0

    def rank(self, asked: QuestionTerms) -> list[Found]:
        """Return the excerpts that hold some term of a question, the best first; of equals the earlier one."""
        asked = self._with_families(asked)
        idf = self._worth(asked)
        total = sum(idf.values()) or 1.0
        wording = frozenset(terms(asked.wording))
        about_orders = asks_of_orders(list(asked.weights))
        found: list[Found] = []
        for number, (read, place) in enumerate(zip(self._read, self._places(asked.names), strict=True)):
            sought = read.sought(asked)
            for excerpt in read.holding(asked):
                if read.is_order(excerpt) and not about_orders:
                    continue
                counts = read.counts(excerpt, sought)
                norm = K1 * (1 - B + B * max(SHORTEST, read.length(excerpt)) / self._mean)
                score = sum(idf[term] * n * (K1 + 1) / (n + norm) for term, n in counts.items())
                score += PAIR * sum(idf[a] + idf[b] for a, b in read.pairs(excerpt, asked)) / 2
                share = sum(idf[term] * min(1.0, n) for term, n in counts.items()) / total
                score *= 1 + COVERED * share
                if asked.kind and has_kind(asked.kind, read.says(excerpt), asked.wording):
                    score *= OF_KIND
                if read.is_named(excerpt, wording):
                    score *= NAMED
                if asked.definition > 1 and defines(read.says(excerpt), asked):
                    score *= asked.definition
                score = math.prod(read.wanting(excerpt), start=score)
                if read.is_boilerplate(excerpt):
                    score, share = score * BOILERPLATE, share * BOILERPLATE
                found.append(Found(number, excerpt, round(score * place, 9), share * place))
        found.sort(key=lambda each: -each.score)
        return found

    def of_texts(self, asked: QuestionTerms) -> list[float]:
        """Return how relevant each text is beside the others, from 0 to 1: by its best excerpt, and by its title.

        "Where was the director of X born?" is answered by a text that may share no word with it. Its title stands in
        the text on X: a bridge. A text gains if the question has its title, or one of the texts with the best excerpts.
        """
        scores = [0.0] * len(self._read)
        for found in self.rank(asked):
            scores[found.text] = max(scores[found.text], found.score)
        best = max(scores, default=0.0) or 1.0
        scores = [score / best for score in scores]
        leading = sorted(range(len(scores)), key=lambda number: -scores[number])[:LEADING]
        wording = frozenset(terms(asked.wording))
        raised: list[float] = []
        for read, score in zip(self._read, scores, strict=True):
            bridges = [scores[n] for n in leading if self._read[n] is not read and self._read[n].mentions(read.name)]
            named = bool(read.name) and read.name <= wording
            raised.append(score + BRIDGE * max([float(named), *bridges]))
        most = max(raised, default=0.0) or 1.0
        return [round(score / most, 9) for score in raised]

    def worth(self, asked: QuestionTerms) -> dict[frozenset[str], float]:
        """Return what each of a question's terms is worth, by the words that texts use for it, itself among them."""
        asked = self._with_families(asked)
        worth = self._worth(asked)
        return {frozenset(said): worth[term] for term, said in asked.terms.items()}

    def unmet(self, asked: QuestionTerms) -> float:
        """Return the share of a question's terms, by worth, that no text has, nor a word in their place."""
        asked = self._with_families(asked)
        worth = self._worth(asked)
        absent = (term for term, said in asked.terms.items() if not any(read.has(said) for read in self._read))
        return sum(worth[term] for term in absent) / (sum(worth.values()) or 1.0)

    def has(self, term: str, asked: QuestionTerms) -> bool:
        """Whether a text has a term of a question, or a word in its place."""
        said = self._with_families(asked).terms[term]
        return any(read.has(said) for read in self._read)

    def defines(self, found: Found, asked: QuestionTerms) -> bool:
        """Whether an excerpt opens with a definition of what is asked for."""
        return defines(self._read[found.text].says(found.excerpt), asked)

    def together(self, found: Found, asked: QuestionTerms) -> float:
        """Return the largest share of a question's terms, by worth, that one line of an excerpt, or above it, holds."""
        asked = self._with_families(asked)
        worth = self._worth(asked)
        held = self._read[found.text].held_in_lines(found.excerpt, asked)
        most = max((sum(worth[term] * share for term, share in line.items()) for line in held), default=0.0)
        return most / (sum(worth.values()) or 1.0)

    def answers(self, found: Found, asked: QuestionTerms) -> bool:
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
        self,
        found: Sequence[Found],
        asked: QuestionTerms,
        max_tokens: int,
        *,
        overhead: int = 0,
        around: float = 0.0,
        most: int = MOST_RANKED,
    ) -> list[Chosen]:
        """Return at most `most` excerpts that fit together, the best first, when each takes `overhead` tokens more.

        Rows and items below the same header or lead-in have it only once.

        One that is part of a chosen one is passed over, and so is one whose sentences on the question others have said;
        one that contains chosen ones takes the place of the first. With `around`, a share of their scores, it does so
        only if it is nearly as good, and below a heading only if it holds more of the question.
        """
        chosen: list[tuple[Found, str, int]] = []
        said: set[str] = set()
        room = max_tokens
        for each in found[:MOST_RANKED]:
            over = [other for other in chosen if _overlap(other[0], each)]
            inside = [other for other in over if _contains(each, other[0])]
            if len(inside) < len(over) or (around and any(not self._around(each, one[0], around) for one in inside)):
                continue
            markdown = self.markdown(each, asked)
            shared = each.excerpt.lead and any(_is_beside(each, other[0]) for other in chosen)
            cost = count_tokens(self.says(each) if shared else markdown) + overhead
            refund = sum(other[2] for other in inside)
            tells = self._read[each.text].tells(each.excerpt, asked)
            full = len(chosen) >= most and not shared
            if cost > room + refund or (not inside and (tells <= said or full)):
                continue
            said |= tells
            place = chosen.index(inside[0]) if inside else len(chosen)
            chosen = [other for other in chosen if other not in inside]
            chosen.insert(place, (each, markdown, cost))
            room += refund - cost
            if room < LEAST_ROOM:
                break
        return [self._chosen(each, markdown) for each, markdown, _ in chosen]

    def _chosen(self, found: Found, markdown: str) -> Chosen:
        excerpt, start = found.excerpt, found.excerpt.own.start
        section = start if self._begins_with_heading(found) else excerpt.headings[-1] if excerpt.headings else 0
        return Chosen(found.text, excerpt.kind, markdown, found.share, found.score, section, start)

    def _around(self, longer: Found, inside: Found, least: float) -> bool:
        """Whether an excerpt may take the place of one in it: nearly as good, and below a heading only if it adds."""
        adds = not self._begins_with_heading(longer) or longer.share > inside.share
        return longer.own >= least * inside.own and adds

    def _begins_with_heading(self, found: Found) -> bool:
        return self._read[found.text].text.units[found.excerpt.units.start].kind == "heading"

    def markdown(self, found: Found, asked: QuestionTerms) -> str:
        """Return an excerpt as Markdown, below its heading where that says what it does not."""
        read = self._read[found.text]
        return read.text.markdown(found.excerpt, heading=read.needs_heading(found.excerpt, asked))

    def start(self, found: Found) -> int:
        """Return where an excerpt begins in its text."""
        return self._read[found.text].text.parsed.sentence(found.excerpt.own[0]).start

    def says(self, found: Found) -> str:
        """Return the text of an excerpt, without its lead-in."""
        return self._read[found.text].says(found.excerpt)

    def sentences(self, found: Found) -> list[str]:
        """Return the sentences, rows or items of an excerpt, without its lead-in."""
        parsed = self._read[found.text].text.parsed
        return [parsed.sentence(n).text for n in found.excerpt.own if parsed.kinds[n] not in ("heading", "rule")]

    def heading(self, found: Found) -> str:
        """Return the heading above an excerpt; empty without one."""
        read = self._read[found.text].text
        return read.parsed.sentence(found.excerpt.headings[-1]).text if found.excerpt.headings else ""

    def _with_families(self, asked: QuestionTerms) -> QuestionTerms:
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

    def _worth(self, asked: QuestionTerms) -> dict[str, float]:
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


def _is_beside(a: Found, b: Found) -> bool:
    """Whether two excerpts stand below the same header or lead-in."""
    return a.text == b.text and a.excerpt.lead == b.excerpt.lead


def _contains(a: Found, b: Found) -> bool:
    return a.excerpt.units.start <= b.excerpt.units.start and b.excerpt.units.stop <= a.excerpt.units.stop


MOST_INSTEAD = 2.0  # times that another word counts for a term
OWN, LEAD, HEADING, UPPER_HEADING, TITLE, NEIGHBOUR = 1.0, 0.6, 0.8, 0.4, 0.6, 0.25  # weights of the fields

_LINK = re.compile(r"\[[^\[\]]*\]\([^()\s]*\)")
_WORD = re.compile(r"\w{2}")
_PARENTHESIS = re.compile(r"\s*\([^)]*\)")


Sought = Mapping[str, Sequence[tuple[float, float, Sequence[int], bool]]]
"""By term, each word in its place: its weight, what the title has of it, its sentences, and whether it is the term."""


class RankedText:
    """A text as the ranking sees it."""

    def __init__(self, passage: Passage) -> None:
        self.text = ReadText(passage.text)
        self._title = Counter(terms(passage.title))
        name = frozenset(terms(_PARENTHESIS.sub("", passage.title) or passage.title))
        self.name = name if any(len(term) > 2 for term in name) else frozenset[str]()
        """The terms of its title without what a parenthesis explains; none if it is too short to be found by them."""
        self._quantities: dict[str, list[int]] = {}
        self._orders = orders(self.text.parsed)
        self._unit_of = {n: i for i, unit in enumerate(self.text.units) for n in unit.own}
        self._excerpts_of: dict[int, list[int]] = defaultdict(list)  # by unit
        self._wanting: dict[range, tuple[float, ...]] = {}  # by the units of an excerpt
        self._boilerplate: dict[int, bool] = {}  # by sentence
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

    def mentions(self, name: Iterable[str]) -> bool:
        """Whether a sentence has all terms of a name."""
        held = [frozenset(self.text.parsed.occurrences.get(term, ())) for term in name]
        return bool(held) and bool(frozenset.intersection(*held))

    def is_titled(self, name: Iterable[str]) -> bool:
        """Whether the title has all terms of a name."""
        return all(self._title[term] for term in name)

    def holding(self, asked: QuestionTerms) -> list[Excerpt]:
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
                (weight, TITLE * self._title[word], found, word == term)
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
            for weight, titled, found, is_term in words:
                held = titled
                if found:
                    held += sum(factor * _between(found, own) for own, factor in fields if own)
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
            yield {
                term: max(
                    (weight for weight, _, found, _ in words if any(_between(found, own) for own in line)), default=0.0
                )
                for term, words in sought.items()
            }

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

    def is_named(self, excerpt: Excerpt, wording: Collection[str]) -> bool:
        """Whether an excerpt is a row whose first cell has no words but the question's."""
        if excerpt.kind != "table" or len(excerpt.units) > 1:
            return False
        first = set(terms(first_cell(self.says(excerpt))))
        return bool(first) and first.issubset(wording)

    def is_order(self, excerpt: Excerpt) -> bool:
        """Whether a paragraph of an excerpt gives orders to a language model."""
        return bool(self._orders) and any(self.text.parsed.paragraphs[n] in self._orders for n in excerpt.own)

    def is_boilerplate(self, excerpt: Excerpt) -> bool:
        """Whether half of an excerpt's sentences only call on the reader or repeat key words."""
        return 2 * sum(map(self._is_boilerplate, excerpt.own)) >= len(excerpt.own)

    def _is_boilerplate(self, number: int) -> bool:
        parsed = self.text.parsed
        if number not in self._boilerplate:
            self._boilerplate[number] = parsed.kinds[number] == "prose" and is_boilerplate(
                parsed.sentence(number).text, parsed.terms(number)
            )
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

    def needs_heading(self, excerpt: Excerpt, asked: QuestionTerms) -> bool:
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


_kept = KeptTexts[Passage, RankedText](KEPT_CHARS)


def _between(numbers: Sequence[int], own: range) -> int:
    return bisect_left(numbers, own.stop) - bisect_left(numbers, own.start)
