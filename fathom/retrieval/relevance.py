"""How relevant an excerpt is to a question: the one ranking of search, narrowing, notes and report.

BM25 with fields (Robertson, Zaragoza and Taylor, 2004): what an excerpt says, what introduces it, the headings above
it, its neighbours, and its document's title. A term that texts use in place of the question's counts in part. An
excerpt that holds the kind of thing that is asked for, and one that covers more of the question, are worth more.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import NamedTuple

from fathom.facts.ranges import amounts_of, cases_of
from fathom.retrieval.asked import QuestionTerms, case_of, defines, read_asked, states_most
from fathom.retrieval.excerpts import Excerpt, announced
from fathom.retrieval.expansion import (
    FAMILY_LETTERS,
    INFLECTED,
    compounds_of,
    is_family,
    is_misspelt,
    nouns_of,
    states,
    without_quantities,
)
from fathom.retrieval.kinds import explains, has_kind
from fathom.retrieval.ranked_text import RankedText, ranked_text
from fathom.retrieval.ranking import Passage
from fathom.retrieval.synonyms import same_terms
from fathom.text.blocks import Kind
from fathom.text.boilerplate import asks_of_orders
from fathom.text.languages import language_of_question
from fathom.text.terms import terms
from fathom.text.tokens import count_tokens

K1, B = 1.2, 0.2
SHORTEST = 12  # terms; shorter excerpts are not better
PAIR = 0.3  # worth of two of the question's terms side by side, as a share of what the two are worth
COVERED = 2.0  # factor on the share of the question that an excerpt holds, added to 1
BESIDE_ITS_OWN = 0.5  # weight of a word that means the same as one that the texts have
FAMILY = 0.4  # weight of a word of the same family, such as "elasticity" for "elastic"
COMPOUND = 0.8  # weight of a German compound whose last part is asked for: "Hafengebühr" for "Gebühr"
MISSPELT = 0.8  # weight of a word that differs from one that no text has by one letter
BOILERPLATE = 0.15  # factor for what only calls on the reader or repeats key words
BRIDGE = 0.8  # of the best text's score, that a text gains whose title the question or another of the best texts has
TRIED = 10  # units of a text that are scored to find its best one
LEADING = 5  # best texts, from which a bridge may lead
OF_BEST_FIELD = 0.8  # of what the best field holds of a question, from which another one is quoted with it
ELSEWHERE = 0.4  # factor for texts that name nothing of what is asked about, where others have it in their titles
OTHER_VERSION = 0.25  # factor for excerpts without the version that is asked about, where others have it
LIMIT = 1.5  # factor for an excerpt that states an upper limit, where one is asked for
NAMED = 1.5  # factor for a row whose first cell the question names
BARE = 0.25  # factor for rows that have none of its words, only the quantity that is asked for
SAID_OF = 0.35  # of a question's terms, by worth, that stand beside the number that answers it
NEARLY_ALL = 0.54  # the same where what is counted, or has the quantity, is not named
UNASKED = 0.5  # factor for an excerpt that does not have what is asked of something, where that is named
ANNOUNCED = 1.5  # the same for a list or table whose heading it names
ASKED_ABOVE = 0.45  # of a question's terms, by worth, in a question above an excerpt that answers it
IN_RANGE = 1.5  # factor for a row, item or sentence whose range has an amount or time that the question gives
OUT_OF_RANGE = 0.4  # the same for a row whose range has none of them and that the question does not name
OF_KIND = 1.25  # factor for an excerpt with the kind of thing that is asked for
EXPLAINED = 1.5  # the same where it is asked how something happens, and several sentences tell it
FEWEST = 100  # units: in a shorter text, what each of its lines says would be worth nothing
AROUND_PART = 0.5  # of a sentence's or field's score, from which its paragraph or record takes its place
MOST_RANKED = 400
LEAST_ROOM = 10  # tokens: hardly any excerpt is shorter


_VERSION = re.compile(r"\d+(?:\.\d+)+")
_CODE = re.compile(r"\b[A-Za-z]+-\d+\b")  # "RX-320" is one name: what is said of an RX-300 and of 320 °C is not of it


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
    heading: str = ""  # that it stands below in its Markdown, as "Heading:"


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
        self._read = [ranked_text(text) for text in texts]
        self._units = sum(len(read.text.units) for read in self._read)
        lengths = sum(read.text.parsed.length(unit.own) for read in self._read for unit in read.text.units)
        self._mean = lengths / (self._units or 1) or 1.0

    def rank(self, asked: QuestionTerms) -> list[Found]:
        """Return the excerpts that hold some term of a question, the best first; of equals the earlier one."""
        asked = self._with_families(asked)
        idf = self._worth(asked)
        found: list[Found] = []
        for number, place in enumerate(self._places(asked.names)):
            found += self._scored(number, place, self._read[number].holding(asked), asked, idf)
        found.sort(key=lambda each: -each.score)
        return found

    def of_texts(self, asked: QuestionTerms) -> list[float]:
        """Return how relevant each text is beside the others, from 0 to 1: by its best unit, and by its title.

        The best unit is sought among the few whose own words hold most of the question: to rank every excerpt takes
        several times as long, and tells relevant texts from others hardly better.

        "Where was the director of X born?" is answered by a text that may share no word with it. Its title stands in
        the text on X: a bridge. A text gains if the question has its title, or one of the texts with the best units.
        """
        asked = self._with_families(asked)
        idf = self._worth(asked)
        scores: list[float] = []
        for number, place in enumerate(self._places(asked.names)):
            units = self._read[number].best_units(asked, idf, TRIED)
            found = self._scored(number, place, units, asked, idf)
            scores.append(max((each.score for each in found), default=0.0))
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

    def _scored(
        self, number: int, place: float, excerpts: Iterable[Excerpt], asked: QuestionTerms, idf: Mapping[str, float]
    ) -> Iterator[Found]:
        """Yield excerpts of a text with their scores, but none that gives orders to language models."""
        read = self._read[number]
        total = sum(idf.values()) or 1.0
        wording = frozenset(terms(asked.wording))
        names = asked.names_of_rows.union(*(same_terms(term) for term in asked.weights))
        about_orders = asks_of_orders(list(asked.weights))
        sought = read.sought(asked)
        versions = [term for term in asked.weights if _VERSION.fullmatch(term) and self.has(term, asked)]
        codes = self._codes(asked)
        amounts, cases = amounts_of(asked.wording), cases_of(asked.wording)
        alone: dict[int, float] = {}  # scores of units by their numbers
        for excerpt in excerpts:
            if read.is_order(excerpt) and not about_orders:
                continue
            counts = read.counts(excerpt, sought)
            norm = K1 * (1 - B + B * max(SHORTEST, read.length(excerpt)) / self._mean)
            score = sum(idf[term] * n * (K1 + 1) / (n + norm) for term, n in counts.items())
            score += PAIR * sum(idf[a] + idf[b] for a, b in read.pairs(excerpt, asked)) / 2
            share = sum(idf[term] * min(1.0, n) for term, n in counts.items()) / total
            score *= 1 + COVERED * share
            score = math.prod(_as_an_answer(read, excerpt, asked), start=score)
            is_named = read.is_named(excerpt, names)
            if is_named:
                score *= NAMED
            if not (asked.kind and asked.kind.is_name) and read.is_bare(excerpt, sought):
                score *= BARE
            if read.is_announced(excerpt, wording):
                score *= ANNOUNCED
            if sum(idf[term] * held for term, held in read.asks(excerpt, sought).items()) >= ASKED_ABOVE * total:
                score *= ANNOUNCED
            if asked.attribute and not asked.quantities and not counts.get(asked.attribute):
                score *= UNASKED
            if any(not counts.get(v) for v in versions) or any(not read.has_code(code, excerpt) for code in codes):
                score, share = score * OTHER_VERSION, share * OTHER_VERSION
            case = amounts if excerpt.kind == "prose" else cases  # a sentence may name its time for any reason
            if case and len(excerpt.units) == 1 and (held := read.in_range(excerpt.own[-1], case)) is not None:
                score *= IN_RANGE if held else OUT_OF_RANGE if excerpt.kind != "prose" and not is_named else 1.0
            score = math.prod(read.wanting(excerpt), start=score)
            if read.is_boilerplate(excerpt, asked):
                score, share = score * BOILERPLATE, share * BOILERPLATE
            if len(excerpt.units) == 1:
                alone[excerpt.units[0]] = score
            elif read.text.begins_with_lead_in(excerpt):
                score = max(score, alone.get(excerpt.units[0], 0.0))  # without what it announces it is no answer
            yield Found(number, excerpt, round(score * place, 9), share * place)

    def worth(self, asked: QuestionTerms) -> dict[frozenset[str], float]:
        """Return what each of a question's terms is worth, by the words that texts use for it, itself among them."""
        asked = self._with_families(asked)
        worth = self._worth(asked)
        return {frozenset(said): worth[term] for term, said in asked.terms.items()}

    def unmet(self, asked: QuestionTerms) -> dict[str, float]:
        """Return the terms of a question that no text has, nor a word in their place, each with its share of the worth.

        What tells only the asker's own case counts where a text has it.
        """
        asked = self._with_families(asked)
        absent = {term for term, said in asked.terms.items() if not any(read.has(said) for read in self._read)}
        case = case_of(asked.wording)
        worth = {term: each for term, each in self._worth(asked).items() if term not in absent & case}
        total = sum(worth.values()) or 1.0
        return {term: worth[term] / total for term in absent - case}

    def has(self, term: str, asked: QuestionTerms) -> bool:
        """Whether a text has a term of a question, or a word in its place."""
        said = self._with_families(asked).terms[term]
        return any(read.has(said) for read in self._read)

    def _codes(self, asked: QuestionTerms) -> list[tuple[str, ...]]:
        """Return the terms of the codes that a question names, as "RX-320", and a text has."""
        codes = [tuple(terms(code)) for code in _CODE.findall(asked.wording)]
        return [code for code in codes if any(read.has_code(code) for read in self._read)]

    def defines(self, found: Found, asked: QuestionTerms) -> bool:
        """Whether an excerpt opens with a definition of what is asked for."""
        return defines(self._read[found.text].says(found.excerpt), asked)

    def together(self, found: Found, asked: QuestionTerms, needed: str = "") -> float:
        """Return the largest share of a question's terms, by worth, that one line of an excerpt, or above it, holds.

        Only lines count that have the needed term, if there is one, or a word in its place.
        """
        if not all(self._read[found.text].has_code(code, found.excerpt) for code in self._codes(asked)):
            return 0.0
        asked = self._with_families(asked)
        worth = self._worth(asked)
        held = self._read[found.text].held_in_lines(found.excerpt, asked)
        lines = (line for line in held if needed not in worth or line.get(needed))
        most = max((sum(worth[term] * share for term, share in line.items()) for line in lines), default=0.0)
        return most / (sum(worth.values()) or 1.0)

    def answers(self, found: Found, asked: QuestionTerms) -> bool:
        """Whether an excerpt has what an answer must hold: a number, a date or a name, where one is asked for.

        It also has one of the names that were added to the question, if any text has them.
        """
        added = [name for name in asked.added if any(read.has([name]) for read in self._read)]
        if added and not any(self._read[found.text].stands_by(name, found.excerpt) for name in added):
            return False
        if not (asked.kind and asked.kind.needed):
            return True
        stated = self._read[found.text].states(found.excerpt, asked)
        if asked.quantities and not any(states(quantity, stated) for quantity in asked.quantities):
            stated = without_quantities(stated)
        if not has_kind(asked.kind, stated, asked.wording):
            return False
        named = self._read[found.text].is_named(found.excerpt, asked.names_of_rows)
        return not asked.kind.is_number or named or self._said_of(found, asked) >= SAID_OF

    def _said_of(self, found: Found, asked: QuestionTerms) -> float:
        """Return the largest share of a question's terms, by worth, that is said of a number that it may ask for.

        What it counts stands there, too, or nearly all else that is asked.
        """
        asked = self._with_families(asked)
        worth = self._worth(asked)
        lines = self._read[found.text].held_by_numbers(found.excerpt, asked)
        total = sum(worth.values()) or 1.0
        shares = ((line, sum(worth[term] * share for term, share in line.items()) / total) for line in lines)
        counted = asked.attribute
        return max((s for line, s in shares if not counted or line[counted] or s >= NEARLY_ALL), default=0.0)

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
        one_row: bool = False,
    ) -> list[Chosen]:
        """Return at most `most` excerpts that fit together, the best first, when each takes `overhead` tokens more.

        Rows and items below the same header or lead-in have it only once.

        One that is part of a chosen one is passed over, and so is one whose sentences on the question others have said;
        one that contains chosen ones takes the place of the first. With `around`, a share of their scores, it does so
        only if it is nearly as good, and below a heading only if it holds more of the question; and of fields only
        those that are asked for are taken. `one_row`: of a table only the row that the question names.
        """
        chosen: list[tuple[Found, str, int]] = []
        said: set[str] = set()
        room = max_tokens

        @cache
        def asked_row(text: int, table: int) -> range | None:
            return self._read[text].asked_row(table, asked)

        for each in found[:MOST_RANKED]:
            over = [other for other in chosen if _overlap(other[0], each)]
            inside = [other for other in over if contains(each, other[0])]
            if each.excerpt.brief and not around:
                continue
            if len(inside) < len(over) or (around and any(not self._around(each, one[0], around) for one in inside)):
                continue
            table = self._read[each.text].table_of(each.excerpt) if one_row else None
            if table is not None and asked_row(each.text, table) not in (None, each.excerpt.own):
                continue
            markdown = self.markdown(each, asked, of_fields=bool(around))
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
        heading = announced(self.heading(found))
        told = heading if heading and markdown.startswith(f"{heading}\n") else ""
        return Chosen(found.text, excerpt.kind, markdown, found.share, found.score, section, start, told)

    def _around(self, longer: Found, inside: Found, least: float) -> bool:
        """Whether an excerpt may take the place of one in it: nearly as good, and below a heading only if it adds.

        A list of records, of which only fields would be quoted, takes the place of none of them.
        """
        read = self._read[longer.text].text
        if read.is_record(inside.excerpt) and read.is_of_fields(longer.excerpt):
            return False
        adds = not self._begins_with_heading(longer) or longer.share > inside.share
        is_whole = longer.excerpt.kind == "prose" or read.is_record(longer.excerpt)
        return longer.own >= (min(least, AROUND_PART) if is_whole else least) * inside.own and adds

    def _begins_with_heading(self, found: Found) -> bool:
        return self._read[found.text].text.units[found.excerpt.units.start].kind == "heading"

    def markdown(self, found: Found, asked: QuestionTerms, *, of_fields: bool = True) -> str:
        """Return an excerpt as Markdown, below its heading if that adds something; of fields those asked for."""
        read = self._read[found.text]
        heading = read.needs_heading(found.excerpt, asked)
        only = self._asked_fields(found, asked) if of_fields and read.text.is_of_fields(found.excerpt) else ()
        return read.text.markdown(found.excerpt, heading=heading, only=only)

    def _asked_fields(self, found: Found, asked: QuestionTerms) -> list[int]:
        """Return the fields of an excerpt that hold nearly as much of a question as the best one, by number."""
        read = self._read[found.text]
        asked = self._with_families(asked)
        worth, sought = self._worth(asked), read.sought(asked)
        held = {
            number: sum(worth[term] * min(1.0, n) for term, n in read.counts(read.text.alone(number), sought).items())
            for number in found.excerpt.units
        }
        return [number for number, own in held.items() if own >= OF_BEST_FIELD * max(held.values())]

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

    def in_context(self, found: Found) -> str:
        """Return an excerpt with its lead-in, behind its title and all headings above it."""
        return f"{self.passages[found.text].title} > {self._read[found.text].in_context(found.excerpt)}"

    def heading(self, found: Found) -> str:
        """Return the heading above an excerpt; empty without one."""
        return self._read[found.text].heading(found.excerpt)

    def _with_families(self, asked: QuestionTerms) -> QuestionTerms:
        """Return what is asked with the words of the texts that are of the same family or nearly spelt alike."""
        wanted: dict[str, Mapping[str, float]] = {}
        nouns = nouns_of(asked.wording)
        inflected = self._by_german_stem if language_of_question(asked.wording) == "de" else {}
        for term, said in asked.terms.items():
            like = {word: FAMILY for word in self._vocabulary.get(term[:FAMILY_LETTERS], ()) if is_family(term, word)}
            if _VERSION.fullmatch(term):
                like = {word: FAMILY for word in self._vocabulary.get(term[:2], ()) if word.startswith(f"{term}.")}
            if not like and term not in self._known:
                like = {word: MISSPELT for word in self._vocabulary.get(term[:2], ()) if is_misspelt(term, word)}
            if term in nouns:
                like |= dict.fromkeys(compounds_of(term, self._known), COMPOUND)
            for stem in terms(term, "german"):
                like |= dict.fromkeys(inflected.get(stem, ()), INFLECTED)
            same = same_terms(term) if term in self._known else ()
            wanted[term] = {**like, **said, **{word: min(said[word], BESIDE_ITS_OWN) for word in same if word in said}}
        return asked._replace(terms=wanted)

    @cached_property
    def _known(self) -> Collection[str]:
        """The words of the texts."""
        return {word for read in self._read for word in read.text.parsed.occurrences}

    @cached_property
    def _by_german_stem(self) -> Mapping[str, Collection[str]]:
        """The words of the texts by what is left without German endings: "neue" and "neuen"."""
        words: defaultdict[str, set[str]] = defaultdict(set)
        for word in self._known:
            for stem in terms(word, "german"):
                words[stem].add(word)
        return words

    @cached_property
    def _vocabulary(self) -> Mapping[str, Collection[str]]:
        """The words of the texts by their first two and first five letters."""
        words: defaultdict[str, set[str]] = defaultdict(set)
        for word in self._known:
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


def _as_an_answer(read: RankedText, excerpt: Excerpt, asked: QuestionTerms) -> Iterator[float]:
    """Yield the factors for an excerpt that has the kind of thing that is asked for, a limit or a definition.

    A reason may stand below a heading that calls it one: "Cause".
    """
    says = read.says(excerpt)
    stated = f"{read.heading(excerpt)}\n{says}" if asked.kind and asked.kind.is_reason else says
    if asked.kind and has_kind(asked.kind, stated, asked.wording):
        yield EXPLAINED if explains(asked.kind, says) else OF_KIND
    if states_most(says, asked.wording):
        yield LIMIT
    if asked.definition > 1 and defines(says, asked):
        yield asked.definition


def contains(a: Found, b: Found) -> bool:
    """Whether an excerpt has all of another one."""
    units, others = a.excerpt.units, b.excerpt.units
    return a.text == b.text and units.start <= others.start and others.stop <= units.stop
