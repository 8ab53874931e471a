"""The passages of its sources that bear on a claim: what a judge of the claim has to see, and little more.

A judge is right where it is shown all sentences that decide, and near chance where one is missing; which of them comes
first hardly matters. So the passages are chosen to have, together, as much as possible of what the claim says: a word,
number or name that a chosen passage has counts less for the next. Several claims add their passages in turn, until the
shared room is used, or the next one would have little of the claim beside its best one; the passages of one claim are
visible to the others.

A claim with more facts gets more passages, and more room. A sentence is shown with its neighbours in the paragraph, an
item with the line that introduces its list, and a short list whole: "- `:=`" has no word by which it could be found.

The beginning of a source is always shown, as it says what the source is; a short source is shown whole. Passages that
the notes quote come before other passages that fit as well: the writer has read nothing else of the source.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge
from operator import itemgetter
from typing import NamedTuple

from fathom.evidence.stored import StoredText
from fathom.evidence.support import claim_weights, places
from fathom.facts.forms import other_forms
from fathom.models import Source
from fathom.retrieval.translation import translations_of
from fathom.roles.judge import ShownPassage
from fathom.text.parsed import ParsedText, Unit, parse, units_of
from fathom.text.terms import query_terms

FRONT_CHARS = 300  # characters shown of the beginning of a source
FIELDS, HEAD_CHARS = 3, 900  # of a head: minimum of `name: value` fields, maximum of characters
WHOLE_CHARS = 900  # of a text that is shown whole
NEARLY_WHOLE = 0.75  # share of a text's characters from which the rest is shown too
PASSAGE_CHARS = 450  # of a sentence with its neighbours in the paragraph
LIST_ITEMS, LIST_CHARS = 12, 1_500  # of a list that is shown whole, at most
USUAL_TERMS = 8  # of a claim; one with more, as it has more facts, gets as many more passages
CODE_LINES = 5  # in one passage
MOST = 12  # passages of one claim
LEAST_WORTH = 0.1  # of a passage, as a share of the worth of the claim's best one; not at a second look
LEAD, HEADING, NEIGHBOUR = 0.6, 0.5, 0.4  # of a word in what introduces a passage, above it and beside it
CONTEXT = 0.1  # weight of a word that only the claim's context has
SOUGHT, FOUND_BEFORE = 1.5, 0.3  # of a word that the judge looks for, and of the claim's others then, as a share
OWN = 1.5  # how much a passage's own score counts, beside what it adds to those chosen before
LENGTH, USUAL = 0.4, 20  # how far the score of a passage falls with its terms, and how many a usual one has
QUOTED = 0.3  # added to the score of what notes quote
CANDIDATES = 150  # passages of one claim that are weighed against each other
_ENDS = ("", "e", "en", "n", "s", "es", "er")  # of German words in other forms
_FIELD = re.compile(r"(?:^|\s)[A-Z][\w-]{1,30}: \S")


class BearingSpan(NamedTuple):
    """A stretch of a text, as character offsets."""

    text: StoredText
    start: int
    end: int

    @property
    def length(self) -> int:
        """Characters."""
        return self.end - self.start


def place_of(passage: ShownPassage, texts: Iterable[StoredText]) -> BearingSpan | None:
    """Return the stretch of the text that a shown passage comes from; None if no text has it."""
    for text in texts:
        place = text.characters(passage.start, passage.end) if text.artifact_file == passage.artifact_file else None
        if place and text.text[place[0] : place[1]] == passage.text:
            return BearingSpan(text, *place)
    return None


def share_of(sentence: str) -> float:
    """Return by what factor a claim needs more passages than a usual claim, given the number of its facts."""
    return max(1.0, len(claim_weights(sentence)) / USUAL_TERMS)


class SoughtClaim(NamedTuple):
    """A claim for which passages are searched, with its context, the words that a judge missed, and its sources."""

    sentence: str
    context: str
    source_ids: Collection[str]
    cited: Collection[str]  # the sources that it cites itself; the other ones are cited around it
    look_for: str = ""
    kept: Sequence[BearingSpan] = ()  # passages that a judge named before
    least: float = 0.0  # share of what is sought, 0 to 1, that a passage must have


class Bearing:
    """The texts of some sources, searched for the passages that bear on claims. Each text is read once."""

    def __init__(self, texts: Iterable[StoredText], quoted: Iterable[tuple[str, Collection[str]]] = ()) -> None:
        """Take the texts, and the notes' quotations of them, each with the ids of its sources."""
        by_source: defaultdict[str, list[StoredText]] = defaultdict(list)
        for text in sorted(texts, key=lambda text: -len(text.text)):
            own = by_source[text.source.source_id]
            if not any(text.text in longer.text for longer in own):
                own.append(text)
        quotations: defaultdict[str, list[str]] = defaultdict(list)
        for words, source_ids in quoted:
            for source_id in source_ids:
                quotations[source_id].append(words)
        self._read = {
            source_id: [_Read(text, quotations[source_id]) for text in own] for source_id, own in by_source.items()
        }

    @property
    def source_ids(self) -> Collection[str]:
        """The ids of all sources that are searched."""
        return self._read.keys()

    def chosen(self, wanted: Sequence[SoughtClaim], room: int) -> list[BearingSpan]:
        """Return the passages for some claims, about `room` characters, without repetitions.

        They are in the order of the texts. The passages kept from an earlier request are added, and so is the beginning
        of each text that a claim cites, unless the search is only for a missing part.
        """
        taken = _Taken()
        for one in wanted:
            taken.add(one.kept)
        fresh = (one for one in wanted if not one.look_for)
        for text in dict.fromkeys(read for one in fresh for read in self._of(one.cited)):
            taken.add([text.beginning])
        room += taken.length
        for _, spans in merge(*(self._due(one) for one in wanted), key=itemgetter(0)):
            if taken.length >= room:
                break
            taken.add(spans)
        taken.complete()
        return taken.spans()

    def joined(self, spans: Iterable[BearingSpan]) -> list[BearingSpan]:
        """Return passages without repetitions, those that touch as one, in the order of the texts."""
        taken = _Taken()
        taken.add(spans)
        return taken.spans()

    def sources(self, source_ids: Iterable[str]) -> list[Source]:
        """Return sources by their ids, each once; sources without a text are left out."""
        return [self._read[one][0].text.source for one in dict.fromkeys(source_ids) if self._read.get(one)]

    def is_whole(self, source_id: str, spans: Iterable[BearingSpan]) -> bool:
        """Whether some passages cover everything that was read of a source."""
        shown = Counter[StoredText]()
        for span in spans:
            shown[span.text] += span.length
        return all(shown[read.text] >= len(read.text.text.strip()) for read in self._read.get(source_id, ()))

    def span(self, passage: ShownPassage) -> BearingSpan | None:
        """Return the stretch of the text from which a shown passage comes; None if no text has it."""
        return next(filter(None, (place_of(passage, [read.text]) for own in self._read.values() for read in own)), None)

    def headings(self, span: BearingSpan) -> list[str]:
        """Return the headings above a passage, the highest first."""
        read = next(read for read in self._read[span.text.source.source_id] if read.text is span.text)
        return read.headings_above(span.start)

    def _of(self, source_ids: Iterable[str]) -> list[_Read]:
        return [read for source_id in source_ids for read in self._read.get(source_id, ())]

    def _due(self, wanted: SoughtClaim) -> Iterator[tuple[float, list[BearingSpan]]]:
        """Yield the passages for one claim, each with its turn: two per turn for a claim with twice as many terms."""
        share = share_of(wanted.sentence)
        return ((number / share, spans) for number, spans in enumerate(self._ranked(wanted)))

    def _ranked(self, wanted: SoughtClaim) -> Iterator[list[BearingSpan]]:
        """Yield the passages for one claim, each with the lines that introduce it, the best first."""
        keys, forms = _weights(wanted)
        given = [] if wanted.look_for else wanted.cited  # of these a short text is shown whole anyway
        short = [read for source_id in given for read in self._read.get(source_id, ()) if read.is_short]
        reads = [read for read in self._of(wanted.source_ids) if read not in short]
        spread = Counter[str]()
        for read in reads:
            spread.update(read.frequencies(forms))
        number = sum(len(read.units) for read in reads)
        weights = {key: keys[key] * math.log(1 + (number - n + 0.5) / (n + 0.5)) for key, n in spread.items() if n}
        total = math.fsum(weights.values())
        if not total:
            return
        rated = [found for read in reads for found in read.rated(weights, forms, total)]
        sought = math.fsum(keys.values())
        rated = [
            found
            for found in rated
            if math.fsum(keys[key] * share for key, share in found.held.items()) >= wanted.least * sought
        ]
        rated.sort(key=lambda found: (-found.score, found.read.order, found.unit.own[0]))
        # A source may have been read in several parts, which have much in common.
        first: dict[tuple[str, str], _Rated] = {}
        for found in rated:
            first.setdefault((found.read.text.source.source_id, found.read.says(found.unit)), found)
        left, covered, used = list(first.values())[:CANDIDATES], dict[str, float](), set[int]()
        least = 0.0
        for _ in range(min(round(MOST * share_of(wanted.sentence)), len(left))):
            worths = [_worth(found, weights, covered, total, used) for found in left]
            worth = max(worths)
            if worth < least:
                return
            least = least or (0.0 if wanted.look_for else LEAST_WORTH * worth)
            best = left.pop(worths.index(worth))
            used.add(id(best.read))
            for key, share in best.held.items():
                covered[key] = max(covered.get(key, 0.0), share)
            yield best.read.spans(best.unit)


class _Rated(NamedTuple):
    read: _Read
    unit: Unit
    held: Mapping[str, float]  # the terms of the claim that it has, each with its share
    score: float


def _worth(
    found: _Rated, weights: Mapping[str, float], covered: Mapping[str, float], total: float, used: Collection[int]
) -> float:
    """Return the value of a passage beside the chosen ones: what it adds, and more if it is its source's first."""
    new = sum(weights[key] * max(0.0, share - covered.get(key, 0.0)) for key, share in found.held.items()) / total
    return new + (OWN + (id(found.read) not in used)) * found.score


def _weights(wanted: SoughtClaim) -> tuple[dict[str, float], dict[str, str]]:
    """Return the weight of each term of a claim, and the term of each other form."""
    weights = claim_weights(wanted.sentence)
    if wanted.look_for:
        weights = {term: weight * FOUND_BEFORE for term, weight in weights.items()}
        weights |= dict.fromkeys(query_terms(wanted.look_for), SOUGHT)
    for term in query_terms(wanted.context):
        weights.setdefault(term, CONTEXT)
    forms = {term: term for term in weights}
    sought = f"{wanted.sentence} {wanted.look_for}"
    words = ((word, term) for term, said in translations_of(sought).items() for word in said)
    translated = ((f"{word}{end}", term) for word, term in words for end in _ENDS)
    for form, term in (*other_forms(sought).items(), *translated):
        if term in weights:
            forms.setdefault(form, term)
    return weights, forms


class _Taken:
    """The chosen passages, without overlaps and repetitions within a source."""

    def __init__(self) -> None:
        self._spans: defaultdict[StoredText, list[tuple[int, int]]] = defaultdict(list)
        self._said: defaultdict[str, list[str]] = defaultdict(list)  # of each source, in one line
        self.length = 0

    def add(self, spans: Iterable[BearingSpan]) -> None:
        """Add some passages."""
        for span in spans:
            said = " ".join(span.text.text[span.start : span.end].split())
            before = self._said[span.text.source.source_id]
            if any(said in other for other in before):  # the same in another text of the source
                continue
            before.append(said)
            places = self._spans[span.text]
            merged = _merged([*places, (span.start, span.end)], span.text.text)
            self.length += sum(e - s for s, e in merged) - sum(e - s for s, e in places)
            self._spans[span.text] = merged

    def complete(self) -> None:
        """Add what little is left of texts that are nearly whole: a judge of a whole source need not look again."""
        for text, held in self._spans.items():
            if sum(end - start for start, end in held) >= NEARLY_WHOLE * len(text.text.strip()):
                start = len(text.text) - len(text.text.lstrip())
                self._spans[text] = [(start, max(start, len(text.text.rstrip())))]

    def spans(self) -> list[BearingSpan]:
        """Return them in the order of the texts."""
        return [BearingSpan(text, *place) for text, places in self._spans.items() for place in places]


def _merged(places: Iterable[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """Return places in order; places separated only by white space are joined."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if found and (start <= found[-1][1] or not text[found[-1][1] : start].strip()):
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _parts(unit: Unit) -> Iterator[Unit]:
    """Yield a unit; code is split into a few lines each, since an unclosed fence turns all that follows into code."""
    own = unit.own
    step = CODE_LINES if unit.kind == "code" else max(1, len(own))
    for first in range(own.start, own.stop, step):
        yield unit._replace(own=range(first, min(first + step, own.stop)))


class _Read:
    """A text with its units, parsed when it is first needed; `quoted` holds the notes' quotations of its source."""

    def __init__(self, text: StoredText, quoted: Sequence[str]) -> None:
        self.text = text
        self._quotations = quoted
        self.order = (text.source.source_id, text.artifact_file, text.first_byte)
        self.is_short = len(text.text) <= WHOLE_CHARS

    @cached_property
    def parsed(self) -> ParsedText:
        return parse(self.text.text)

    @cached_property
    def units(self) -> Sequence[Unit]:
        return [part for unit in units_of(self.parsed, self.text.text) for part in _parts(unit)]

    @cached_property
    def _unit_of(self) -> Mapping[int, int]:
        """The number of the unit that each sentence is of."""
        return {number: place for place, unit in enumerate(self.units) for number in unit.own}

    @cached_property
    def _quoted(self) -> frozenset[int]:
        """The numbers of the units that notes quote."""
        found: set[int] = set()
        for words in self._quotations:
            for start, end in places(words, self.text.text):
                found.update(self._unit_of[n] for n in self.parsed.holding(start, end) if n in self._unit_of)
        return frozenset(found)

    @property
    def beginning(self) -> BearingSpan:
        """The text if it is short; else its first sentences, as many as there is room for, at least one.

        A head of fields, such as `Status: Final`, is shown up to the first heading.
        """
        text = self.text.text
        start = len(text) - len(text.lstrip())
        if self.is_short:
            return BearingSpan(self.text, start, max(start, len(text.rstrip())))
        end, room = start, FRONT_CHARS
        if len(_FIELD.findall(text, start, start + HEAD_CHARS)) >= FIELDS:
            room = HEAD_CHARS
        for number in range(len(self.parsed)):
            sentence = self.parsed.sentence(number)
            over = sentence.end - start > room or (room == HEAD_CHARS and sentence.kind == "heading")
            if over and end > start:
                break
            end = min(sentence.end, start + 2 * FRONT_CHARS)
        return BearingSpan(self.text, start, end)

    def frequencies(self, forms: Mapping[str, str]) -> dict[str, int]:
        """Return the number of units that contain each term, in any form."""
        places: defaultdict[str, set[int]] = defaultdict(set)
        for form, term in forms.items():
            places[term].update(self._holding(form))
        return {term: len(found) for term, found in places.items()}

    def _holding(self, form: str) -> Iterator[int]:
        return (self._unit_of[n] for n in self.parsed.occurrences.get(form, ()) if n in self._unit_of)

    def rated(self, weights: Mapping[str, float], forms: Mapping[str, str], total: float) -> Iterator[_Rated]:
        """Yield the units that have most of a claim, with the terms that they and the lines around them have."""
        own: defaultdict[int, set[str]] = defaultdict(set)
        for form, term in forms.items():
            if term in weights:
                for place in self._holding(form):
                    own[place].add(term)
        rough = sorted(own, key=lambda place: (-math.fsum(weights[term] for term in own[place]), place))
        for place in dict.fromkeys([*sorted(self._quoted), *rough[:CANDIDATES]]):
            unit = self.units[place]
            if unit.kind == "heading":
                continue
            held = dict.fromkeys(own.get(place, ()), 1.0)
            around = (max(0, unit.own[0] - 1), min(len(self.parsed) - 1, unit.own[-1] + 1))
            for numbers, share in ((unit.lead, LEAD), (unit.headings, HEADING), (around, NEIGHBOUR)):
                for number in numbers:
                    for said in self.parsed.terms(number):
                        term = forms.get(said, "")
                        if term in weights and held.get(term, 0.0) < share:
                            held[term] = share
            length = 1 - LENGTH + LENGTH * max(self.parsed.length(unit.own), USUAL // 2) / USUAL
            score = math.fsum(weights[term] * share for term, share in held.items()) / total / length
            score += QUOTED if place in self._quoted else 0.0
            yield _Rated(self, unit, held, score)

    def spans(self, unit: Unit) -> list[BearingSpan]:
        """Return a unit as it is shown: with its introduction, a sentence with its neighbours, a short list whole."""
        if self.is_short:
            return [self.beginning]
        place = self._unit_of[unit.own[0]]
        if whole := self._list_around(place):
            return [whole]
        first, last = unit.own[0], unit.own[-1]
        if self._goes_on(first - 1) and self._fits(first - 1, last):
            first -= 1
        if self._goes_on(last) and self._fits(first, last + 1):
            last += 1
        found = [BearingSpan(self.text, self._start(first), self._end(last))]
        if unit.lead:
            found.insert(0, BearingSpan(self.text, self._start(unit.lead[0]), self._end(unit.lead[-1])))
        return found

    def _goes_on(self, number: int) -> bool:
        """Whether the next sentence belongs to the same paragraph."""
        paragraphs = self.parsed.paragraphs
        return 0 <= number < len(self.parsed) - 1 and paragraphs[number] == paragraphs[number + 1]

    def _fits(self, first: int, last: int) -> bool:
        return self._end(last) - self._start(first) <= PASSAGE_CHARS

    def _list_around(self, place: int) -> BearingSpan | None:
        """Return the list that a unit is an item of or introduces, with the line that introduces it, if it is short."""
        units = self.units
        first = last = place if units[place].kind == "item" else place + 1
        while first and units[first - 1].kind == "item":
            first -= 1
        while last < len(units) and units[last].kind == "item":
            last += 1
        if not 0 < last - first <= LIST_ITEMS or (first > place and units[first].lead != units[place].own):
            return None
        lead = units[first].lead or units[first].own
        found = BearingSpan(self.text, self._start(lead[0]), self._end(units[last - 1].own[-1]))
        return found if found.length <= LIST_CHARS else None

    def says(self, unit: Unit) -> str:
        """Return the text of a unit on one line."""
        return " ".join(self.text.text[self._start(unit.own[0]) : self._end(unit.own[-1])].split())

    def headings_above(self, start: int) -> list[str]:
        """Return the headings above a place of the text, the highest first."""
        held = self.parsed.holding(start, start + 1)
        place = self._unit_of.get(held[0]) if len(self.parsed) else None
        above = self.units[place].headings if place is not None else ()
        return [self.parsed.sentence(number).clean.strip("# ").strip() for number in above]

    def _start(self, number: int) -> int:
        return self.parsed.sentence(number).start

    def _end(self, number: int) -> int:
        return self.parsed.sentence(number).end
