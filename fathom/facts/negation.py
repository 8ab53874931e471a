"""Saying the opposite in nearly the same words: a negation on one side only, or a word that turns the direction.

Any doubt counts, as it costs a claim little. Sources are told to contradict each other only where a whole sentence is
plainly denied, so `fathom.contradictions.polarity` has its own, shorter list of negations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fathom.facts.opposites import side_of
from fathom.text.stopwords import STOP_WORDS
from fathom.text.terms import terms

SCOPE = 3  # words of topic behind a negation that it may deny
_CUE = re.compile(
    r"\b(?:not(?!\s+only\b)|no(?!\.)|never|none|neither|nor|without|cannot|unable|fail(?:s|ed|ing)?|lack(?:s|ed|ing)?"
    r"|den(?:y|ies|ied)|refus(?:e|es|ed)|hardly|absence of|nicht(?!\s+nur\b)|kein\w*|nie|niemals|ohne)\b|n['’]t\b",
    re.IGNORECASE,
)
_STOP = re.compile(r"[.;:!?()]|,|\b(?:but|although|though|while|whereas|aber|sondern|obwohl)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


def opposed(claim: str, quote: str) -> tuple[str, str] | None:
    """Return a word of the claim and its opposite in the quote, where each text has only its own side.

    Of a comparison the quote must have a word of the same side; where it has none, the second word is empty.
    """
    said, quoted = _by_term(claim), _by_term(quote)
    own = {side for term in said if (side := side_of(term))}
    its = {side: word for term, word in reversed(quoted.items()) if (side := side_of(term))}
    for term, word in said.items():
        side = side_of(term)
        if not side or side.opposite in own or term in quoted or (side.compares and side in its):
            continue
        if other := its.get(side.opposite, ""):
            return word, other
        if side.compares:
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
