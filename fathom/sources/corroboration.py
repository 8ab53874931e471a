"""Which facts of a source other, independent sources have too.

Two sources are independent when they are not of one site and neither repeats the other's text. A fact is a quotation
in the notes; a source has it when one of its sentences has most of its words and all of its numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from fathom.contradictions.finding import Said
from fathom.models import Source, SourceText
from fathom.sources.hosts import site_of
from fathom.text.sentences import split_sentences
from fathom.text.terms import query_terms, terms
from fathom.text.urls import host_of

HELD = 0.75  # of a fact's words
LEAST_TERMS = 4  # a fact of fewer words is shared by chance
COPIED = 0.5  # share of the shorter text's sentences from which two texts are one
MAX_CHARS = 200_000  # of a text that are read
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def site(source: Source) -> str:
    """Return who publishes a source: its site; each document is its own, all of Python's reference are one."""
    if source.kind == "web":
        return site_of(host_of(source.url))
    return "python" if source.url.startswith("python:") else source.url


class _Sentences:
    """The sentences of all texts, found by their words."""

    def __init__(self, texts: Iterable[SourceText]) -> None:
        self.said: list[tuple[str, frozenset[str], frozenset[str]]] = []  # source, terms, numbers
        self.holding: dict[str, list[int]] = {}
        self.copies: dict[str, set[str]] = {}  # of each source, its sentences
        for text in texts:
            own = self.copies.setdefault(text.source_id, set())
            for sentence in split_sentences(text.text[:MAX_CHARS]):
                found = frozenset(terms(sentence.text))
                if sentence.kind in ("heading", "rule", "code") or len(found) < LEAST_TERMS:
                    continue
                own.add(sentence.clean.casefold())
                for term in found:
                    self.holding.setdefault(term, []).append(len(self.said))
                self.said.append((text.source_id, found, _numbers(sentence.text)))

    def having(self, fact: str) -> set[str]:
        """Return the sources in which one sentence has the fact."""
        wanted = query_terms(fact)
        if len(wanted) < LEAST_TERMS:
            return set()
        # A sentence with three quarters of the words has one of the rarest quarter and one.
        rare = sorted(wanted, key=lambda term: len(self.holding.get(term, ())))
        rare = rare[: len(wanted) - math.ceil(HELD * len(wanted)) + 1]
        near = {i for term in rare for i in self.holding.get(term, ())}
        figures, least = _numbers(fact), HELD * len(wanted)
        return {
            source_id
            for source_id, found, given in (self.said[i] for i in near)
            if figures <= given and sum(term in found for term in wanted) >= least
        }


def _numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text without the commas of thousands; a citation such as [1] is not one."""
    found = _NUMBER.findall(re.sub(r"\[[^\]]{1,80}\]", " ", text))
    return frozenset(re.sub(r",(?=\d{3})", "", number) for number in found)


def corroborate(texts: Sequence[SourceText], facts: Iterable[Said]) -> dict[str, list[int]]:
    """Count for each source and each of its facts the independent sources that have it too."""
    sentences = _Sentences(texts)
    sites_of, copies = {text.source_id: site(text) for text in texts}, sentences.copies
    found: dict[str, list[int]] = {}
    for fact, source_ids, _ in facts:
        having = sentences.having(fact) | ({*source_ids} & sites_of.keys())
        for source_id in dict.fromkeys(source_ids):
            if source_id in sites_of:
                sites = {sites_of[other] for other in having if not _repeats(copies[source_id], copies[other])}
                found.setdefault(source_id, []).append(len(sites - {sites_of[source_id]}))
    return found


def _repeats(mine: set[str], yours: set[str]) -> bool:
    """Whether one of two texts repeats the other, by their sentences."""
    return len(mine & yours) >= COPIED * (min(len(mine), len(yours)) or 1)
