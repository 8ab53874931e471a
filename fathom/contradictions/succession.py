"""Which of two statements replaces the other, when one is later: another number, owner or decision for the same thing.

The later of two dates alone proves nothing, since documents are about different things. So both must be about the same
thing by their words, and differ in one value of the same kind; where the later one says that something changes ("now",
"instead of", "takes over"), their other words may differ more. A wrong replacement misleads: in doubt there is none.
"""

from __future__ import annotations

import re
from functools import lru_cache

from fathom.contradictions.finding import differ
from fathom.contradictions.reading import Reading, content_terms
from fathom.facts.extraction import agree
from fathom.text.terms import terms

SHARED = 0.6  # of a statement's words that both must have where the later one tells of a change

_VERSION = re.compile(r"v?\d{1,3}(?:\.\d+)+")
_VAGUE_WORDS = "team project document page meeting group work service product thing plan price name date note section"


def differing(a: Reading, b: Reading) -> bool:
    """Whether two statements give different numbers for the same thing, so that at most one of them holds."""
    if a.open or b.open:
        return False
    if a.key or b.key:
        return _same_field(a, b) and _other_figure(a, b)
    return bool(a.assertion and b.assertion and differ(a.assertion, b.assertion))


def replaces(later: Reading, earlier: Reading) -> bool:
    """Whether the later of two statements says something else about the same thing."""
    if later.open or earlier.open or not (later.about & earlier.about or later.key == earlier.key):
        return False
    if _versions(later) != _versions(earlier):
        return False
    if later.minutes and earlier.minutes and not (later.changes or later.decided):
        return False
    return (
        differing(later, earlier)
        or _other_owner(later, earlier)
        or _decided(later, earlier)
        or _changed(later, earlier)
    )


def _versions(reading: Reading) -> frozenset[str]:
    """Return the version that a document's title names: what 2.0 says does not replace what 1.0 says."""
    return frozenset(term for term in reading.title if _VERSION.fullmatch(term))


def _same_field(a: Reading, b: Reading) -> bool:
    """Whether both are of the same field, in documents of the same title but for dates."""
    same_title = a.title & b.title and (a.title <= b.title or b.title <= a.title)
    return bool(a.key and a.key == b.key and same_title)


def _other_figure(a: Reading, b: Reading) -> bool:
    """Whether each has one figure of a kind, and they differ."""
    if len(a.figures) != 1 or len(b.figures) != 1:
        return False
    f, g = a.figures[0], b.figures[0]
    return bool(f.kinds & g.kinds) and f.rate == g.rate and not agree(f, g)


def _other_owner(later: Reading, earlier: Reading) -> bool:
    """Whether someone else has the same thing."""
    if not later.owned or not earlier.owned:
        return False
    hand_over = later.changes and not earlier.changes
    new = later.names - earlier.names
    former = earlier.names if hand_over else earlier.names - later.names
    if not new or not former:
        return False
    if later.key and earlier.key:
        return _same_field(later, earlier)
    mine, yours = later.about - new - former, earlier.about - former
    return bool(_telling(mine & yours)) and (mine == yours or (hand_over and (mine <= yours or yours <= mine)))


def _decided(later: Reading, earlier: Reading) -> bool:
    """Whether two decisions choose differently for the same thing."""
    if not later.chosen or not earlier.chosen:
        return False
    new, former = later.names - earlier.names, earlier.names - later.names
    days = later.days and earlier.days and not later.days & earlier.days
    mine, yours = later.about - new - later.days, earlier.about - former - earlier.days
    same = bool(_telling(mine & yours)) and (mine <= yours or yours <= mine)
    return same and bool((new and former) or days)


def _changed(later: Reading, earlier: Reading) -> bool:
    """Whether the later sentence tells of a change to what the earlier one says."""
    if not later.changes or earlier.changes or later.key or earlier.key:
        return False
    shared = later.about & earlier.about
    if later.old:
        said = frozenset(content_terms(earlier.text))
        same = _covers((later.about | later.old) & said, earlier.about) and _telling(shared - later.old)
        return bool(same) and later.old <= said
    if not _telling(shared) or not _covers(shared, earlier.about):
        return False
    if later.moved_to:
        return len(earlier.facts.dates) == 1 and not later.moved_to.agrees(earlier.facts.dates[0].date)
    alike = len(shared) > 1 and _covers(shared, later.about) and later.facts.dates == earlier.facts.dates == []
    return alike and _other_figure(later, earlier)


def _covers(shared: frozenset[str], about: frozenset[str]) -> bool:
    return len(shared & about) >= SHARED * len(about)


def _telling(about: frozenset[str]) -> frozenset[str]:
    """Return the terms that say which thing is meant."""
    return about - _vague()


@lru_cache(maxsize=1)
def _vague() -> frozenset[str]:
    return frozenset(terms(_VAGUE_WORDS))
