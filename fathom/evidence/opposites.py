"""Saying the opposite in nearly the same words: a negation on one side only, or a word that turns the direction."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fathom.text.stopwords import STOP_WORDS
from fathom.text.terms import terms

__all__ = ["denied_first", "denied_terms", "is_denial", "opposed"]

SCOPE = 3  # words of topic behind a negation that it may deny
_CUE = re.compile(
    r"\b(?:not(?!\s+only\b)|no(?!\.)|never|none|neither|nor|without|cannot|unable|fail(?:s|ed|ing)?|lack(?:s|ed|ing)?"
    r"|den(?:y|ies|ied)|refus(?:e|es|ed)|hardly|absence of|nicht(?!\s+nur\b)|kein\w*|nie|niemals|ohne)\b|n['’]t\b",
    re.IGNORECASE,
)
_STOP = re.compile(r"[.;:!?()]|,|\b(?:but|although|though|while|whereas|aber|sondern|obwohl)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+(?:['’-]\w+)*")

_COMPARISONS = """
rise rose risen increase grow grew grown growth gain climb surge higher raise elevate more greater larger exceed \
double expand / fall fell fallen decrease decline drop shrink lower reduce lose loss sink less fewer \
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
allow permit legal legalise legalize / forbid forbidden ban prohibit illegal
accept approve adopt / reject refuse
support favour favor / oppose
import / export
buy bought purchase acquire / sell sold
succeed success successful / fail failure unsuccessful
cause promote induce enhance activate stimulate enable / prevent inhibit suppress repress block impair abolish disable
positive positively / negative negatively
north northern / south southern
east eastern / west western
true correct / false wrong incorrect
safe harmless / unsafe dangerous harmful
possible / impossible
mutable / immutable
synchronous / asynchronous
present / absent
always / never
accelerate / slow delay
open / close
start begin began / stop end cease
enter join / leave left quit
male men man / female women woman
benefit beneficial / harm harmful
dependent / independent
optional / mandatory required
größte höchste / kleinste niedrigste
"""


def _read(lines: str) -> dict[str, tuple[set[str], set[str]]]:
    """Return for each term those of its own side and those of the other."""
    table: dict[str, tuple[set[str], set[str]]] = {}
    for line in lines.strip().split("\n"):
        one, other = ({t for word in side.split() for t in terms(word)} for side in line.split("/"))
        for own, opposite in ((one, other), (other, one)):
            table |= dict.fromkeys(own, (own, opposite))
    return table


_COMPARING = _read(_COMPARISONS)
_TABLE = {**_read(_OPPOSITES), **_COMPARING}


def opposed(claim: str, quote: str) -> tuple[str, str] | None:
    """Return a word of the claim and its opposite in the quote, where each text has only its own side.

    Of a comparison the quote must have a word of the same side; where it has none, the second word is empty.
    """
    said, quoted = _by_term(claim), _by_term(quote)
    for term, word in said.items():
        same, opposites = _TABLE.get(term, (set(), set()))
        if opposites & said.keys() or term in quoted or (term in _COMPARING and same & quoted.keys()):
            continue
        if other := next((quoted[o] for o in quoted if o in opposites), ""):
            return word, other
        if term in _COMPARING:
            return word, ""
    return None


def is_denial(word: str) -> bool:
    """Whether a word denies what follows, such as `Lack`."""
    return bool(_CUE.fullmatch(word))


def denied_terms(text: str) -> dict[str, str]:
    """Return the terms that a text denies, with their words: the next few behind a negation, in the same clause."""
    return {term: word for words in _denied(text) for word in words for term in terms(word)}


def denied_first(text: str) -> dict[str, str]:
    """Return of each negation only the first term that it denies, with its word."""
    return {term: word for words in _denied(text) for word in words[:1] for term in terms(word)[:1]}


def _denied(text: str) -> Iterator[list[str]]:
    for cue in _CUE.finditer(text):
        stop = _STOP.search(text, cue.end())
        clause = text[cue.end() : stop.start() if stop else len(text)]
        yield [word for word in _WORD.findall(clause) if word.lower() not in STOP_WORDS][:SCOPE]


def _by_term(text: str) -> dict[str, str]:
    return {term: word for word in _WORD.findall(text) for term in terms(word)}
