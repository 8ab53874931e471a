"""Sentences of different sources that cannot both hold: another number, another date, or a negation.

A false alarm costs the reader's trust, so two sentences must be nearly alike but for that one thing, about the same
time and the same names, and no word may say that they are about different parts of it. A contradiction in other words
is not found. `docs/sources.md` states the rules.

A negation counts only if both sentences have the same words and it clearly denies the whole sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import islice
from typing import NamedTuple

from fathom.contradictions.assertions import Assertion, assertion_of
from fathom.contradictions.titles import alike, names_apart, of_other_years, one_pattern, other_versions
from fathom.facts.extraction import Figure, agree
from fathom.facts.opposites import NEGATION, side_of
from fathom.models import Contradiction
from fathom.text.sentences import split_sentences
from fathom.text.terms import STOP_WORDS, terms

SHARED = 0.6  # of the shorter sentence's words, without figures
LONGER = 0.4  # of the longer one's
SAME = 0.8  # of the longer one's, where they share only two
LEAST_SHARED = 3
NEXT = 100  # following sentences with the same word that are considered
TITLES = 0.5  # of the shorter title's words: the sources are about the same thing
SERIES = 4  # least number of figures of a series: "the population was ..." of many towns
NEAREST = 40  # sentences that each is compared with: keeps a thousand similar sentences linear


Point = tuple[str, frozenset[object]]
"""The point on which two sentences disagree: its kind, and the two values."""


class Said(NamedTuple):
    """A text and its sources. `title` is the source's title, which tells whose "the population" is."""

    text: str
    source_ids: tuple[str, ...]
    title: str = ""


def find_contradictions(said: Iterable[Said], most: int = 10) -> list[Contradiction]:
    """Return at most `most` pairs of sentences of different sources that cannot both hold, in the order of the texts.

    A sentence that several sources have counts once, for all of them.
    """
    found: dict[Point, list[tuple[Assertion, Assertion]]] = {}
    unnamed: dict[str, set[object]] = {}  # the figures whose subject no sentence names
    for a, b in _candidates(_assertions(said)):
        if point := _point(a, b):
            if not _anchored(a, b):
                unnamed.setdefault(point[0], set()).update(point[1])
            found.setdefault(point, []).append((a, b))
    series = {what for what, values in unnamed.items() if len(values) >= SERIES}
    kept = ((point, pairs) for point, pairs in found.items() if point[0] not in series or _anchored(*pairs[0]))
    contradictions: list[Contradiction] = []
    for point, pairs in islice(kept, most):  # the others have the same two figures
        a, b = pairs[0]
        sources = dict.fromkeys(source for pair in pairs for one in pair for source in one.source_ids)
        side = _other_side(point, pairs)
        other = [source for source in sources if source in side]
        contradictions.append(
            Contradiction(claim_a=a.text, claim_b=b.text, source_ids=list(sources), other_source_ids=other)
        )
    return contradictions


def _other_side(point: Point, pairs: Sequence[tuple[Assertion, Assertion]]) -> set[str]:
    """Return the sources of the second sentence of the first pair; in other pairs that sentence may come first."""
    said = _value(point, pairs[0][1])
    return {source for pair in pairs for one in pair if _value(point, one) == said for source in one.source_ids}


def _value(point: Point, one: Assertion) -> object:
    """Return one sentence's value of the point on which two sentences disagree."""
    _, values = point
    own = {(figure.low, figure.high) for figure in one.figures} | {event.date for event in one.events.values()}
    return frozenset(own & values) or sign_of(one.said)


def differ(a: Assertion, b: Assertion) -> bool:
    """Whether two sentences cannot both hold."""
    return _point(a, b) is not None


def _assertions(said: Iterable[Said]) -> list[Assertion]:
    sources: dict[tuple[str, str], dict[str, None]] = {}
    for text, source_ids, title in said:
        for sentence in split_sentences(text):
            if sentence.kind in ("prose", "item"):
                sources.setdefault((sentence.clean, title), {}).update(dict.fromkeys(source_ids))
    made = (assertion_of(text, tuple(ids), title) for (text, title), ids in sources.items())
    return [assertion for assertion in made if assertion]


def _candidates(assertions: Sequence[Assertion]) -> Iterator[tuple[Assertion, Assertion]]:
    """Yield the pairs that may be about the same thing: they share words, rare ones counting more."""
    holding: dict[str, list[int]] = {}
    for i, assertion in enumerate(assertions):
        for term in _about(assertion):
            holding.setdefault(term, []).append(i)
    for i, assertion in enumerate(assertions):
        shared: dict[int, float] = {}
        for term in sorted(_about(assertion), key=lambda term: (len(holding[term]), term)):
            near = holding[term]
            after = bisect_right(near, i)
            for j in near[after : after + NEXT]:
                shared[j] = shared.get(j, 0.0) + 1 / len(near)
        for j in sorted(nlargest(NEAREST, shared, key=lambda j: (shared[j], -j))):
            if not set(assertion.source_ids) & set(assertions[j].source_ids):
                yield assertion, assertions[j]


def _about(assertion: Assertion) -> frozenset[str]:
    """Return the search keys of a sentence: its words, and the things that it counts."""
    return assertion.terms.union(*(figure.kinds for figure in assertion.figures))


def _point(a: Assertion, b: Assertion) -> Point | None:
    """Return the point on which two sentences disagree; None if they agree."""
    if a.numbered != b.numbered or a.qualifiers != b.qualifiers or other_versions(a.title, b.title):
        return None
    if not (_anchored(a, b) or _one_subject(a, b)):
        return None
    if dates := _dates_apart(a, b):
        return dates
    if _other_names(a, b) or (not a.times and of_other_years(a.title, b.title)):
        return None
    return _figures_apart(a, b) or opposed(a, b)


def _one_subject(a: Assertion, b: Assertion) -> bool:
    """Whether sentences that do not both name their subject have the same one, by their names and their titles'."""
    pattern = one_pattern(a.title, b.title)
    mine, yours = (
        [*one.named, *(name._replace(sure=name.sure or pattern) for name in one.title.names)] for one in (a, b)
    )
    apart = names_apart(mine, yours, a.ordinary | b.ordinary)
    return alike(a.title, b.title, TITLES) if apart is None else not apart


def _anchored(a: Assertion, b: Assertion) -> bool:
    """Whether both sentences name their subject."""
    return bool(a.names & b.names) and not a.unnamed and not b.unnamed


def _other_names(a: Assertion, b: Assertion) -> bool:
    """Whether each sentence has a name the other lacks; a word that opens one may be inside the other."""
    return bool(a.names - b.names - b.terms) and bool(b.names - a.names - a.terms)


def _alike(a: Assertion, b: Assertion, aside: frozenset[str]) -> bool:
    """Whether two sentences are about the same thing, without some words."""
    mine, yours = a.terms - aside, b.terms - aside
    shared = mine & yours
    short, long = sorted((len(mine), len(yours)))
    if not shared - a.names - b.names:
        return False  # they name the same thing and say different things about it
    return bool(
        len(shared) >= max(LEAST_SHARED, SHARED * short, LONGER * long)
        or len(shared) >= max(2, SAME * long)
        or (shared & a.names and len(shared) == short >= max(2, long / 2))
        or (a.counted & b.counted and (a.unnamed or b.unnamed))
    )


def _figures_apart(a: Assertion, b: Assertion) -> Point | None:
    """Return the one pair of differing figures for the same thing, if all other such pairs agree."""
    if a.times != b.times or a.conditions != b.conditions or a.changes != b.changes:
        return None  # of two years, or at two heights
    apart: list[tuple[Figure, Figure]] = []
    for f in a.figures:
        mine = [one for one in a.figures if _same_kind(one, f)]
        yours = [one for one in b.figures if _same_kind(one, f)]
        if len(mine) != len(yours) and yours:
            return None  # it is unknown which figures belong together
        # Several of a kind are compared in their order.
        apart += [(one, other) for one, other in zip(mine, yours, strict=False) if one is f and not agree(one, other)]
    if len(apart) != 1:
        return None
    ((f, g),) = apart
    if not _alike(a, b, f.kinds | g.kinds):
        return None
    return (min(f.kinds & g.kinds), frozenset([(f.low, f.high), (g.low, g.high)]))


def _same_kind(f: Figure, g: Figure) -> bool:
    return bool(f.kinds & g.kinds) and f.rate == g.rate


def _dates_apart(a: Assertion, b: Assertion) -> Point | None:
    for event in sorted(a.events.keys() & b.events.keys()):
        mine, yours = a.events[event], b.events[event]
        small, large = sorted((mine.subject, yours.subject), key=len)
        same_subject = small and small <= large  # "Holm", "Ada Holm"
        if not mine.agrees(yours) and ((event[1] and same_subject) or _same_event(a, b, *event)):
            return (event[0], frozenset([mine.date, yours.date]))
    return None


def _same_event(a: Assertion, b: Assertion, verb: str, done_to: bool) -> bool:
    # "began to build ships", "began to build ferries"
    if _other_names(a, b) or (not done_to and a.terms - b.terms and b.terms - a.terms):
        return False
    about = (a.terms & b.terms) - set(verb.split())
    # "The report was published" may be any report: a name, two words or the titles must say which.
    known = len(about) >= 2 or about & a.names or (about and a.title.words and b.title.words)
    return bool(known) and _alike(a, b, frozenset())


_IGNORED = frozenset(terms(" ".join(STOP_WORDS)))
OPPOSED_SHARED = 0.8  # of all words of both sentences
IN_ORDER = 0.8  # of the longer one's words: "A increases B" says nothing against "B decreases A"
LEAST_OPPOSED = 3  # common words besides the denied one; two if a name is among them

# These deny less than the whole sentence.
_PARTIAL = re.compile(
    r"\b(?:not|n['’]t|no) (?:only|just|merely|simply|necessarily|always|all|every|everyone|yet|entirely|fully|"
    r"more|less|fewer|later|one|doubt|matter|longer|significant\w*|statistically)\b|\bbut not\b|\bnot .{1,40}\bbut\b"
    r"|\bwithout\b",
    re.IGNORECASE,
)


def opposed(a: Assertion, b: Assertion) -> tuple[str, frozenset[object]] | None:
    """Return the words that one sentence asserts and the other denies; None if there are none."""
    pairs = zip(a.figures, b.figures, strict=False)
    same_figures = len(a.figures) == len(b.figures) and all(f.kinds & g.kinds and agree(f, g) for f, g in pairs)
    if sign_of(a.said) * sign_of(b.said) != -1 or a.times != b.times or not same_figures:
        return None
    first, second = _plain(a.said), _plain(b.said)
    mine, yours = set(first), set(second)
    paired = {term for term in mine | yours if term.startswith("±")}
    if paired - (mine & yours):
        return None  # a word with an opposite that has no counterpart in the other sentence
    shared = (mine & yours) - paired
    if len(shared) < LEAST_OPPOSED - bool(shared & a.names) or len(mine & yours) < OPPOSED_SHARED * len(mine | yours):
        return None
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    if sum(block.size for block in blocks) < IN_ORDER * max(len(first), len(second)):
        return None
    return (" ".join(sorted(shared)), frozenset(["denied"]))


def sign_of(text: str) -> int:
    """Return 1 for a sentence that asserts, -1 for one that denies, 0 if it is unclear."""
    if _PARTIAL.search(text):
        return 0
    sign = -1 if len(NEGATION.findall(text)) % 2 else 1
    for term in terms(NEGATION.sub(" ", text)):  # "failed to" is counted already
        if (side := side_of(term)) and side.excludes and not side.first:
            sign = -sign
    return sign


def _plain(text: str) -> list[str]:
    """Return a sentence's content words; a word with an opposite is replaced by the pair."""
    return [
        f"±{side.pair}" if (side := side_of(term)) and side.excludes else term
        for term in terms(NEGATION.sub(" ", text))
        if term not in _IGNORED
    ]
