"""Denials of a word: a negation before it, or its opposite.

Code denies nothing: `not_null`, `None`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from fathom.facts.code import blanked_code
from fathom.text.terms import STOP_WORDS, terms

SCOPE = 3  # words of topic that a negation before them may deny

NEGATION = re.compile(
    r"\b(?:not(?!\s+only\b)|no(?!\.)|never|(?-i:none|NONE|\ANone|(?<=[.!?:*•-]\s)None)|neither|nor|without|cannot|unable"
    r"|fail(?:s|ed|ing)?|lack(?:s|ed|ing)?|den(?:y|ies|ied)|refus(?:e|es|ed)|hardly|absence of"
    r"|nicht(?!\s+nur\b)|kein\w*|nie|niemals|ohne)\b|n['’]t\b",
    re.IGNORECASE,
)
_STOP = re.compile(r"[.;:!?()]|,|\b(?:but|although|though|while|whereas|aber|sondern|obwohl)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


def denied_terms(text: str, scope: int = SCOPE) -> dict[str, str]:
    """Return the terms that a text denies, with their words: up to `scope` after a negation, in the same clause."""
    denied: dict[str, str] = {}
    for found in NEGATION.finditer(blanked_code(text)):
        stop = _STOP.search(text, found.end())
        clause = text[found.end() : stop.start() if stop else len(text)]
        words = [word for word in _WORD.findall(clause) if word.lower() not in STOP_WORDS][:scope]
        denied |= {term: word for word in words for term in terms(word)}
    return denied


# `!`: both cannot be true of one thing. The others may distinguish two things: imports, exports.
_COMPARISONS = """
! rise rose risen increase grow grew grown growth gain climb surge higher raise elevate more greater larger exceed \
double expand / fall fell fallen decrease decline drop shrink shrank lower reduce lose loss sink less fewer \
smaller reduction diminish halve
most largest biggest highest / least smallest lowest
older oldest / newer newest younger youngest
faster quicker fastest / slower slowest
stronger strengthen / weaker weaken
better best improve / worse worst worsen
longer longest / shorter shortest
cheaper cheapest / dearer costlier
stieg steigt gestiegen zunahme mehr höher wuchs / sank sinkt gesunken abnahme weniger niedriger fiel
"""
_OPPOSITES = """
above / below
before earlier prior preceding / after later subsequent following
first / last
maximum / minimum
win won / lose lost
! allow permit legal lawful legalise legalize / forbid forbade forbidden ban prohibit illegal unlawful
! accept approve adopt / reject refuse
! support favour favor / oppose
import / export
buy bought purchase acquire / sell sold
! succeed success successful / fail failure unsuccessful
! cause promote induce enhance activate activation stimulate enable / prevent inhibit inhibition suppress repress \
block impair abolish disable
! positive positively / negative negatively
north northern / south southern
east eastern / west western
! true correct / false wrong incorrect
! safe harmless / unsafe dangerous harmful
! possible / impossible
! effective / ineffective
! stable / unstable
! likely / unlikely
! profitable / unprofitable
! mutable / immutable
synchronous / asynchronous
! present / absent
always / never
accelerate / slow delay
open / close
start begin began / stop end cease
enter join / leave left quit
male men man / female women woman
benefit beneficial / harm harmful
dependent / independent
! optional / mandatory required
größte höchste / kleinste niedrigste
"""


class OppositeSide(NamedTuple):
    """The side of a pair of opposites that a word is on."""

    pair: int  # number
    first: bool
    compares: bool  # so a source must have a word of the same side
    excludes: bool  # both sides cannot be true of one thing

    @property
    def opposite(self) -> OppositeSide:
        """The other side."""
        return self._replace(first=not self.first)


def side_of(term: str) -> OppositeSide | None:
    """Return the side of a stemmed word, if it has an opposite."""
    return _sides().get(term)


def opposed(claim: str, quote: str) -> tuple[str, str] | None:
    """Return a word of the claim and its opposite in the quote, where each text has only its own side.

    For a comparison the quote must have a word of the same side; if it has none, the second word is empty.
    """
    said, quoted = _by_term(claim), _by_term(quote)
    own = {side for term in said if (side := side_of(term))}
    its = {side: word for term, word in reversed(quoted.items()) if (side := side_of(term))}
    for term, word in said.items():
        side = side_of(term)
        if not side or side.opposite in own or term in quoted or (side.compares and side in its):
            continue
        if (other := its.get(side.opposite, "")) or side.compares:
            return word, other
    return None


@lru_cache(maxsize=512)
def _by_term(text: str) -> dict[str, str]:
    return {term: word for word in _WORD.findall(text) for term in terms(word)}


@cache
def _sides() -> Mapping[str, OppositeSide]:
    sides: dict[str, OppositeSide] = {}
    opposites, comparisons = _OPPOSITES.strip().split("\n"), _COMPARISONS.strip().split("\n")
    for pair, line in enumerate([*opposites, *comparisons]):
        for first, words in zip((True, False), line.lstrip("! ").split("/"), strict=True):
            side = OppositeSide(pair, first, pair >= len(opposites), line.startswith("!"))
            sides |= {term: side for word in words.split() for term in terms(word)}
    return sides
