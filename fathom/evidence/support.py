"""Lexical support: how much of a claim some texts say, by comparing words, and where they say it word for word.

The comparison finds missing words, names and numbers; it cannot find that a text says the opposite.

A text has a claim word for word if it has the words in order, whatever stands between them. Case, white space,
punctuation and Markdown's marks do not count; signs that change what is said, such as `%`, `-5` or `!=`, do. The time
is linear in the text, except for the few places that begin like the claim.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

from fathom.text.plain import common_start
from fathom.text.sentences import split_sentences
from fathom.text.terms import STOP_WORDS, query_terms, terms

PASSAGE_TERMS = 150  # any longer text has the words of a claim by chance
NUMBER, NAME = 1.5, 1.3  # weights of a claim's numbers and names, which have no synonyms; other words have 1
NEAREST = 0.3  # weight of a single sentence: words that stand far apart are there by chance more often
PAIRS = 0.05  # weight of pairs of neighbours in the claim that are neighbours in a reference
# Credit for a word of the same family, such as `explains` for `explanation`, by the share they have in common.
RELATED = 0.7
PREFIX, SHARE = 4, 0.6  # letters and share of the longer word that make a family
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'’-]+")

_WORD = re.compile(r"\w+(?:[.,]\d+)*|[%$€£]|(?<![\w])-(?=\d)")


def spaced_words(text: str) -> str:
    """Return the words and signs of a text in lowercase, separated by spaces, for word-for-word comparison."""
    return f" {' '.join(_WORD.findall(unicodedata.normalize('NFKC', text).casefold()))} "


def support(claim: str, references: Sequence[str]) -> float:
    """Return how far the references together cover a claim, from 0 to 1; another reference never lowers it.

    The best passage of about 150 terms of each reference counts, and the best single sentence for three tenths. Numbers
    and names weigh more than other words; function words weigh nothing. A twentieth of the score is for pairs of
    neighbours in the claim.
    """
    weights = claim_weights(claim)
    if not weights:
        return 0.0
    covered: dict[str, float] = {}
    nearest = 0.0
    pairs = set(pairwise(terms(claim)))
    found: set[tuple[str, str]] = set()
    for reference in references:
        sentences = [terms(sentence.text) for sentence in split_sentences(reference)]
        degrees = _degrees(weights, sentences)
        nearest = max([nearest, *(_weight(degree, weights) for degree in degrees)])
        for term, degree in _best_passage(weights, sentences, degrees).items():
            covered[term] = max(covered.get(term, 0.0), degree)
        found.update(pair for words in sentences for pair in pairwise(words) if pair in pairs)
    share = ((1 - NEAREST) * _weight(covered, weights) + NEAREST * nearest) / sum(weights.values())
    together = len(found) / len(pairs) if pairs else share
    return min(1.0, (1 - PAIRS) * share + PAIRS * together)


def claim_weights(claim: str) -> dict[str, float]:
    """Return the terms of a claim, each with its weight."""
    names = {t for name in _NAME.findall(claim) if name.lower() not in STOP_WORDS for t in terms(name)}
    return {t: NUMBER if t[0].isdigit() else NAME if t in names else 1.0 for t in query_terms(claim)}


def _weight(covered: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weight * covered.get(term, 0.0) for term, weight in weights.items())


def _degrees(weights: Mapping[str, float], sentences: Sequence[Sequence[str]]) -> list[dict[str, float]]:
    """Return which terms each sentence covers, each with its degree."""
    families: dict[str, list[str]] = defaultdict(list)
    for term in weights:
        if len(term) > PREFIX and not term[0].isdigit():
            families[term[:PREFIX]].append(term)
    return [_covered(weights, families, words) for words in sentences]


def _best_passage(
    weights: Mapping[str, float], sentences: Sequence[Sequence[str]], degrees: Sequence[Mapping[str, float]]
) -> dict[str, float]:
    """Return which terms the best run of sentences covers, each with its degree."""
    best: dict[str, float] = {}
    for first in (i for i, degree in enumerate(degrees) if degree):
        passage: dict[str, float] = {}
        length = 0
        for i in range(first, len(sentences)):
            length += len(sentences[i])
            if i > first and length > PASSAGE_TERMS:
                break
            for term, value in degrees[i].items():
                passage[term] = max(passage.get(term, 0.0), value)
        if _weight(passage, weights) > _weight(best, weights):
            best = passage
    return best


def _covered(
    weights: Mapping[str, float], families: Mapping[str, Sequence[str]], words: Sequence[str]
) -> dict[str, float]:
    """Return the degree to which a sentence has each term: 1, or less for a word of the same family."""
    covered = {word: 1.0 for word in words if word in weights}
    for word in words:
        for term in families.get(word[:PREFIX], ()) if word not in covered else ():
            share = common_start(word, term) / max(len(word), len(term))
            if share >= SHARE:
                covered[term] = max(covered.get(term, 0.0), RELATED * share)
    return covered


TRIES = 100  # places in a text that begin like the claim
HEAD = 8  # words of the claim by which a place is found
ENOUGH = 5  # words that no text shares by chance; fewer words must be a whole clause, cell or line

_SIGN = r"[%$€£<>=]|!(?==)|(?<!\w)-(?=\d)"
_TOKEN = re.compile(rf"\w+(?:[.,]\d+)*|{_SIGN}")
_BETWEEN = rf"(?:(?!{_SIGN})\W)*+"
_MARKS = " \t*_`~#>+•\\\"'“”„‘’«»([{)]}-"
_ENDS = frozenset("\n.!?…;:,|–—。！？；：，、")


def places(claim: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the places where a text has a claim, as character offsets; a claim of a few words must be a whole clause.

    Characters before the claim's first word and behind its last, such as a bracket, belong to a place that has them,
    too.
    """
    lowered = _lowered(text)
    words = list(_TOKEN.finditer(_lowered(claim)))
    tokens = [word[0] for word in words]
    if not words or any(token not in lowered for token in sorted(set(tokens), key=len)[-HEAD:]):
        return
    for first in islice(_beginnings(tokens, lowered), TRIES):
        end = _end(tokens, lowered, first)
        if end is None:
            continue
        start = _before(claim[: words[0].start()], text, first)
        end = _behind(claim[words[-1].end() :], text, end)
        if len(tokens) >= ENOUGH or _is_bounded(text, start, end):
            yield start, end


def _lowered(text: str) -> str:
    """Return a text in lowercase with all characters in their places: only this one becomes two."""
    return text.replace("İ", "I").lower()


def _beginnings(tokens: list[str], lowered: str) -> Iterator[int]:
    """Yield where a text has the first words of a claim; the places may overlap."""
    first = tokens[0]
    left = r"(?<!\w)(?<!\d[.,])" if first[0].isalnum() or first[0] == "_" else ""
    head = re.compile(left + _BETWEEN.join(_whole(token) for token in tokens[:HEAD]))
    place = lowered.find(first)  # far quicker than the pattern, which tries every place
    while place >= 0:
        if head.match(lowered, place):
            yield place
        place = lowered.find(first, place + 1)


def _whole(token: str) -> str:
    return re.escape(token) + (r"(?!\w|(?<=\d)[.,]\d)" if token[-1].isalnum() or token[-1] == "_" else "")


def _end(tokens: list[str], lowered: str, start: int) -> int | None:
    """Return the end of some words that a text has from a place on; None if it has other words."""
    end = start
    found = _TOKEN.finditer(lowered, start)
    for token in tokens:
        word = next(found, None)
        if word is None or word[0] != token:
            return None
        end = word.end()
    return end


def _before(lead: str, text: str, start: int) -> int:
    for character in reversed("".join(lead.split())):
        place = start - 1
        while place > 0 and text[place].isspace():
            place -= 1
        if place < 0 or text[place] != character:
            break
        start = place
    return start


def _behind(tail: str, text: str, end: int) -> int:
    for character in "".join(tail.split()):
        place = end
        while place < len(text) - 1 and text[place].isspace():
            place += 1
        if text[place : place + 1] != character:
            break
        end = place + 1
    return end


def _is_bounded(text: str, start: int, end: int) -> bool:
    """Whether a sentence, clause, cell or line begins and ends with a place."""
    before = text[max(0, start - 40) : start].rstrip(_MARKS)
    after = text[end : end + 40].lstrip(_MARKS)
    return (start == 0 or not before or before[-1] in _ENDS) and (
        not after or after[0] in _ENDS or text[end - 1] in _ENDS - {","}
    )
