"""Pairs of sentences in the same words, except that one denies what the other says.

A negation counts only where it clearly denies the whole sentence.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import cache

from fathom.contradictions.assertions import Assertion
from fathom.facts.extraction import agree
from fathom.facts.opposites import NEGATION, side_of
from fathom.text.terms import STOP_WORDS, terms

SHARED = 0.8  # of all words of both sentences
IN_ORDER = 0.8  # of the longer one's words: "A increases B" says nothing against "B decreases A"
LEAST_SHARED = 3  # words beside the one denied; with a name among them, two

# These deny less than the whole sentence.
_PARTIAL = re.compile(
    r"\b(?:not|n['’]t|no) (?:only|just|merely|simply|necessarily|always|all|every|everyone|yet|entirely|fully|"
    r"more|less|fewer|later|one|doubt|matter|longer|significant\w*|statistically)\b|\bbut not\b|\bnot .{1,40}\bbut\b"
    r"|\bwithout\b",
    re.IGNORECASE,
)


def opposed(a: Assertion, b: Assertion) -> tuple[str, frozenset[object]] | None:
    """Return the words that one sentence asserts and the other denies; None where they do not."""
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
    if len(shared) < LEAST_SHARED - bool(shared & a.names) or len(mine & yours) < SHARED * len(mine | yours):
        return None
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    if sum(block.size for block in blocks) < IN_ORDER * max(len(first), len(second)):
        return None
    return (" ".join(sorted(shared)), frozenset(["denied"]))


def sign_of(text: str) -> int:
    """Return 1 for a sentence that asserts, -1 for one that denies, 0 where that is not clear."""
    if _PARTIAL.search(text):
        return 0
    sign = -1 if len(NEGATION.findall(text)) % 2 else 1
    for term in terms(NEGATION.sub(" ", text)):  # "failed to" is counted already
        if (side := side_of(term)) and side.excludes and not side.first:
            sign = -sign
    return sign


def _plain(text: str) -> list[str]:
    """Return a sentence's content words, those with an opposite as their pair."""
    return [
        f"±{side.pair}" if (side := side_of(term)) and side.excludes else term
        for term in terms(NEGATION.sub(" ", text))
        if term not in _ignored()
    ]


@cache
def _ignored() -> frozenset[str]:
    return frozenset(terms(" ".join(STOP_WORDS)))
