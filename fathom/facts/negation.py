"""Negations, and the words that they deny. In code nothing is denied: `not_null`, `None`."""

from __future__ import annotations

import re

from fathom.facts.code import blanked_code
from fathom.text.terms import STOP_WORDS, terms

SCOPE = 3  # words of topic behind a negation that it may deny

NEGATION = re.compile(
    r"\b(?:not(?!\s+only\b)|no(?!\.)|never|(?-i:none|NONE|\ANone|(?<=[.!?:*•-]\s)None)|neither|nor|without|cannot|unable"
    r"|fail(?:s|ed|ing)?|lack(?:s|ed|ing)?|den(?:y|ies|ied)|refus(?:e|es|ed)|hardly|absence of"
    r"|nicht(?!\s+nur\b)|kein\w*|nie|niemals|ohne)\b|n['’]t\b",
    re.IGNORECASE,
)
_STOP = re.compile(r"[.;:!?()]|,|\b(?:but|although|though|while|whereas|aber|sondern|obwohl)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


def denied_terms(text: str, scope: int = SCOPE) -> dict[str, str]:
    """Return the terms that a text denies, with their words: the next `scope` behind a negation, in the same clause."""
    denied: dict[str, str] = {}
    for found in NEGATION.finditer(blanked_code(text)):
        stop = _STOP.search(text, found.end())
        clause = text[found.end() : stop.start() if stop else len(text)]
        words = [word for word in _WORD.findall(clause) if word.lower() not in STOP_WORDS][:scope]
        denied |= {term: word for word in words for term in terms(word)}
    return denied
