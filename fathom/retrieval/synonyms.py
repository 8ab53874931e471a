"""Words that mean the same, and phrases that people say for one word.

People ask in the words of every day ("my daughter threw up", "the builder is late"), documents answer in those of their
trade ("vomiting", "the contractor", "delay"). Each line of `words/en.txt` and `words/de.txt` has words of which one
stands for any other; a word with several meanings is in several lines. `words/phrases.txt` has phrases, and the words
that texts have for them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from importlib.resources import files

from fathom.text.terms import query_terms, terms

SAME = 0.7  # weight of a word that means the same


def _lines(name: str) -> list[str]:
    text = files("fathom.retrieval").joinpath("words", name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@cache
def _same_by_term() -> dict[str, tuple[str, ...]]:
    table: defaultdict[str, list[str]] = defaultdict(list)
    for group in map(terms, (*_lines("en.txt"), *_lines("de.txt"))):
        for term in group:
            table[term] += [other for other in group if other != term]
    return {term: tuple(dict.fromkeys(others)) for term, others in table.items()}


def same_terms(term: str) -> tuple[str, ...]:
    """Return the terms of the words that mean the same as that of a term in some use."""
    return _same_by_term().get(term, ())


@cache
def _phrases() -> dict[str, list[tuple[str, list[str]]]]:
    """Return each phrase with the terms of the words that mean the same, by the last word of the phrase."""
    by_last: defaultdict[str, list[tuple[str, list[str]]]] = defaultdict(list)
    for line in _lines("phrases.txt"):
        phrases, words = line.split(": ")
        for phrase in phrases.split(", "):
            by_last[phrase.split()[-1]].append((phrase, terms(words)))
    return by_last


def _with_gaps(phrase: str) -> str:
    """Return the pattern of a phrase, also with a regular form of its first word: "signed off", "putting off".

    Up to two words may stand between its words, as in "hold money back".
    """
    first, *others = phrase.split(" ")
    forms = rf"{first[:-1]}(?:y|ie[sd]|ying)" if first.endswith("y") else rf"{first}(?:e?[sd]|{first[-1]}?ing)?"
    if first.endswith("e"):
        forms = rf"{first[:-1]}(?:e[sd]?|ing)"
    return r"(?: \w+){0,2}? ".join([rf"\b{forms}", *others]) + r"\b"


def phrases_of(question: str) -> dict[str, dict[str, float]]:
    """Return the last terms of phrases in a question, with the terms of the words that mean the same as the phrase."""
    found: dict[str, dict[str, float]] = {}
    for word in dict.fromkeys(re.findall(r"[\w'’-]+", question.lower())):
        for phrase, words in _phrases().get(word, ()):
            said = re.search(_with_gaps(phrase), question, re.IGNORECASE)
            for key in query_terms(said[0])[-1:] if said else ():
                found.setdefault(key, {}).update(dict.fromkeys(words, SAME))
    return found
