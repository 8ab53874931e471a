"""Which facts of a source other, independent sources have too.

Two sources are independent when they are not of one site, and neither repeats the other's text nor says that it amends,
supplements or replaces the other (`succession.py`). Scholarly works are
independent when they have no author in common, wherever they stand. A fact is a quotation in the notes; a source has it
when one of its sentences has most of its words and all of its numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fathom.contradictions.finding import Said
from fathom.models import Source, SourceText
from fathom.sources.hosts import site_of
from fathom.sources.succession import standing_of
from fathom.text.parsed import ParsedText, parse
from fathom.text.terms import query_terms
from fathom.text.urls import host_of

HELD = 0.75  # of a fact's words
LEAST_TERMS = 4  # a fact of fewer words is shared by chance
LEAST_OF_ROW = 2  # of a row with a number, which says no more than what the number is of
COPIED = 0.5  # share of the shorter text's sentences from which two texts are one
_SILENT = ("heading", "rule", "code")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def site(source: Source) -> str:
    """Return who publishes a source: its site or MCP server; each document is its own, Python's reference is one.

    A work with a DOI is its own too: what repositories and journals hold is said by its authors.
    """
    if source.reference and source.reference.doi:
        return f"doi.org/{source.reference.doi}"
    if source.kind == "web":
        return site_of(host_of(source.url))
    if source.kind == "mcp":
        return "/".join(source.url.split("/")[:3])
    return "python" if source.url.startswith("python:") else source.url


class Party(NamedTuple):
    """Who says what a source says: its site and, of a work, its authors by family name and initial."""

    site: str
    authors: frozenset[str]

    def related(self, other: Party) -> bool:
        """Whether the two are of one site or have an author in common."""
        return self.site == other.site or not self.authors.isdisjoint(other.authors)


def party(source: Source) -> Party:
    """Return who says what a source says."""
    names = (name.strip() for name in (source.reference.authors if source.reference else ()))
    parted = (name.split(",", 1) if "," in name else name.rsplit(" ", 1)[::-1] for name in names if name)
    authors = (f"{family} {''.join(given).strip()[:1]}".casefold() for family, *given in parted)
    return Party(site(source), frozenset(authors))


class _Texts:
    """The texts of some sources, one of each, and which of them have a word of some facts."""

    def __init__(self, texts: Iterable[SourceText], facts: Iterable[str]) -> None:
        self._parsed = {text.source_id: parse(text.text) for text in texts}
        wanted = {term for fact in facts for term in query_terms(fact)}
        self._said: dict[str, frozenset[int]] = {}
        self._having: dict[str, list[str]] = {}  # the sources with each term
        for source_id, text in self._parsed.items():
            for term in wanted & text.occurrences.keys():
                self._having.setdefault(term, []).append(source_id)

    def having(self, fact: str) -> set[str]:
        """Return the sources in which one sentence has the fact."""
        wanted, numbers = query_terms(fact), _numbers(fact)
        if len(wanted) < (LEAST_OF_ROW if numbers and "|" in fact else LEAST_TERMS):
            return set()
        # A sentence with three quarters of the words has one of the rarest quarter and one.
        rare = sorted(wanted, key=lambda term: len(self._having.get(term, ())))
        rare = rare[: len(wanted) - math.ceil(HELD * len(wanted)) + 1]
        near = {source_id: self._parsed[source_id] for term in rare for source_id in self._having.get(term, ())}
        return {
            source_id
            for source_id, text in near.items()
            if any(_has(text, i, wanted, numbers) for term in rare for i in text.occurrences.get(term, ()))
        }

    def said(self, source_id: str) -> frozenset[int]:
        """Return the hashes of a source's sentences."""
        if source_id not in self._said:
            self._said[source_id] = frozenset(map(hash, _long_sentences(self._parsed[source_id])))
        return self._said[source_id]


def _has(text: ParsedText, number: int, wanted: Sequence[str], numbers: frozenset[str]) -> bool:
    """Whether a sentence has enough of a fact's words, and all of its numbers."""
    held = text.terms(number)
    return (
        text.kinds[number] not in _SILENT
        and sum(term in held for term in wanted) >= HELD * len(wanted)
        and numbers <= _numbers(text.sentence(number).text)
    )


def _long_sentences(text: ParsedText) -> Iterator[str]:
    for number, kind in enumerate(text.kinds):
        if kind not in _SILENT and len({*text.terms(number)}) >= LEAST_TERMS:
            yield text.sentence(number).clean.casefold()


def _numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text without the commas of thousands; a citation such as [1] is not one."""
    found = _NUMBER.findall(re.sub(r"\[[^\]]{1,80}\]", " ", text))
    return frozenset(re.sub(r",(?=\d{3})", "", number) for number in found)


def corroborate(texts: Sequence[SourceText], facts: Iterable[Said]) -> dict[str, list[int]]:
    """Count for each source and each of its facts the independent sources that have it too."""
    facts = list(facts)
    read = _Texts(texts, (fact.text for fact in facts))
    standings = {text.source_id: standing_of(text, text.text) for text in texts}
    parties = {text.source_id: party(text) for text in texts}
    found: dict[str, list[int]] = {}
    for fact, source_ids, _ in facts:
        having = read.having(fact) | ({*source_ids} & parties.keys())
        for source_id in dict.fromkeys(source_ids):
            if own := parties.get(source_id):
                others = [other for other in having if not own.related(parties[other])]
                others = [other for other in others if not standings[source_id].related(standings[other])]
                sites = {parties[o].site for o in others if not _repeats(read.said(source_id), read.said(o))}
                found.setdefault(source_id, []).append(len(sites))
    return found


def _repeats(mine: frozenset[int], yours: frozenset[int]) -> bool:
    """Whether one of two texts repeats the other, by their sentences."""
    return len(mine & yours) >= COPIED * (min(len(mine), len(yours)) or 1)
