"""Relations between sources: which source changes another, and which facts several sources have.

Two sources are independent when they are not of one site, and neither repeats the other's text nor says that it
amends, supplements or replaces the other. Scholarly works are independent when they have no author in common,
wherever they stand. A fact is a quotation in the notes; a source has it when one of its sentences has most of its
words and all of its numbers.

A source changes another if it says that it amends, supplements or replaces it, or if the other says so. Two such
sources are not independent, and if the newer one says something else, they do not disagree. This is read from fields of
the header at the top (`Replaces: 12`, `Superseded-By: ...`), the title ("Supplement to ...") and the opening ("this
standard updates ..."). A source is named by an identifier in its title or address, a bare number meaning one of the own
series, or by all words of its title.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from fathom.contradictions.finding import Said
from fathom.models import Source, SourceText
from fathom.retrieval.identifiers import identifiers_of, identifiers_of_file
from fathom.sources.domains import site_of
from fathom.text.parsed import ParsedText, parse
from fathom.text.terms import query_terms, terms
from fathom.text.urls import host_of

HELD = 0.75  # share of a fact's words
LEAST_TERMS = 4  # a fact of fewer words is shared by chance
LEAST_OF_ROW = 2  # words of a row with a number, which only names the thing that the number belongs to
COPIED = 0.5  # share of the shorter text's sentences from which two texts are one
COMPUTED = "sql"
"""The scheme of a source that is the result of a query (`fathom/tools/compute.py`)."""
COMPUTED_FROM = "Computed from"
"""The field of a computed source that holds the addresses of the sources whose tables it was computed from."""
_SILENT = ("heading", "rule", "code")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_CITATION = re.compile(r"\[[^\]]{1,80}\]")
_THOUSANDS = re.compile(r",(?=\d{3})")


def site(source: Source) -> str:
    """Return the publisher of a source: its site or MCP server; each document is its own, Python's reference is one.

    A work with a DOI is its own too: its authors speak, not the repository or journal.
    """
    if source.reference and source.reference.doi:
        return f"doi.org/{source.reference.doi}"
    if source.kind == "web":
        return site_of(host_of(source.url))
    if source.kind == "mcp":
        return "/".join(source.url.split("/")[:3])
    scheme = source.url.split(":", 1)[0]
    return scheme if scheme in ("python", COMPUTED) else source.url


def query_of(address: str) -> str:
    """Return the query whose result the source at an address is; empty for all other sources."""
    scheme, _, query = address.partition(":")
    return query if scheme == COMPUTED else ""


def origin_of(source: Source) -> str:
    """Return the address of a source; of a query's result, the addresses of the sources that it was computed from."""
    return source.fields.get(COMPUTED_FROM, source.url) if query_of(source.url) else source.url


class Party(NamedTuple):
    """The party behind a source: its site and, for a work, its authors by family name and initial."""

    site: str
    authors: frozenset[str]

    def related(self, other: Party) -> bool:
        """Whether the two are of one site or have an author in common, or one is computed from what others say."""
        return (
            self.site == other.site or COMPUTED in (self.site, other.site) or not self.authors.isdisjoint(other.authors)
        )


def party(source: Source) -> Party:
    """Return the party behind a source."""
    names = (name.strip() for name in (source.reference.authors if source.reference else ()))
    parted = (name.split(",", 1) if "," in name else name.rsplit(" ", 1)[::-1] for name in names if name)
    authors = (f"{family} {''.join(given).strip()[:1]}".casefold() for family, *given in parted)
    return Party(site(source), frozenset(authors))


class _Texts:
    """The texts of some sources, one of each, searched for facts."""

    def __init__(self, texts: Iterable[SourceText], facts: Sequence[str]) -> None:
        numbers = frozenset[str]().union(*map(_numbers, facts))
        self._texts = {text.source_id: _FactText(parse(text.text), numbers) for text in texts}
        self._repeating: dict[frozenset[str], bool] = {}

    def having(self, fact: str, own: Sequence[str]) -> set[str]:
        """Return the sources in which one sentence has the fact, beside the sources that it is from."""
        wanted, numbers = query_terms(fact), _numbers(fact)
        if len(wanted) < (LEAST_OF_ROW if numbers and "|" in fact else LEAST_TERMS):
            return set()
        return {
            source_id for source_id, text in self._texts.items() if source_id not in own and text.has(wanted, numbers)
        }

    def repeat(self, mine: str, yours: str) -> bool:
        """Whether one of two texts repeats the other, by their sentences."""
        pair = frozenset((mine, yours))
        if pair not in self._repeating:
            said, also = self._texts[mine].said, self._texts[yours].said
            self._repeating[pair] = len(said & also) >= COPIED * (min(len(said), len(also)) or 1)
        return self._repeating[pair]


class _FactText:
    """A text in which facts are looked for.

    Sets of its sentences are kept as the bits of a number, so that the time for a fact does not depend on how many
    sentences share its words: where the vocabulary is small, nearly all do.
    """

    def __init__(self, parsed: ParsedText, numbers: frozenset[str]) -> None:
        self._parsed = parsed
        self._having: dict[str, int] = {}  # the sentences with each term that was looked for
        self._with_number = dict.fromkeys(numbers, 0)  # of the sentences read for numbers, those with each of them
        self._read = 0  # the sentences read for numbers

    def has(self, wanted: Sequence[str], numbers: frozenset[str]) -> bool:
        """Whether a sentence has enough of a fact's words, and all of its numbers."""
        least = math.ceil(HELD * len(wanted))
        if sum(term in self._parsed.occurrences for term in wanted) < least:
            return False
        # The sentences with at least n of the terms seen so far, by n.
        reached = [self._speaking, *[0] * least]
        for term in wanted:
            having = self._with_term(term)
            for held in range(least, 0, -1):
                reached[held] |= reached[held - 1] & having
        found = reached[least]
        self._read_numbers(found)
        for number in numbers:
            found &= self._with_number[number]
        return bool(found)

    @cached_property
    def said(self) -> frozenset[int]:
        """The hashes of its sentences."""
        return frozenset(map(hash, _long_sentences(self._parsed)))

    @cached_property
    def _speaking(self) -> int:
        """The sentences with content: no headings, rules or code."""
        return self._bits(number for number, kind in enumerate(self._parsed.kinds) if kind not in _SILENT)

    def _read_numbers(self, sentences: int) -> None:
        """Read the numbers of some sentences, given as bits; few sentences have the words of any fact."""
        unread = f"{sentences & ~self._read:b}"[::-1]
        found: dict[str, list[int]] = {}
        at = unread.find("1")
        while at >= 0:
            for number in _numbers(self._parsed.sentence(at).text) & self._with_number.keys():
                found.setdefault(number, []).append(at)
            at = unread.find("1", at + 1)
        for number, places in found.items():
            self._with_number[number] |= self._bits(places)
        self._read |= sentences

    def _with_term(self, term: str) -> int:
        if term not in self._having:
            self._having[term] = self._bits(self._parsed.occurrences.get(term, ()))
        return self._having[term]

    def _bits(self, sentences: Iterable[int]) -> int:
        bits = bytearray(len(self._parsed) // 8 + 1)
        for number in sentences:
            bits[number >> 3] |= 1 << (number & 7)
        return int.from_bytes(bits, "little")


def _long_sentences(text: ParsedText) -> Iterator[str]:
    for number, kind in enumerate(text.kinds):
        if kind not in _SILENT and len({*text.terms(number)}) >= LEAST_TERMS:
            yield text.sentence(number).clean.casefold()


def _numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text without the commas of thousands; a citation such as [1] is not one."""
    found = _NUMBER.findall(_CITATION.sub(" ", text) if "[" in text else text)
    return frozenset(_THOUSANDS.sub("", number) if "," in number else number for number in found)


def corroborate(texts: Sequence[SourceText], facts: Iterable[Said]) -> dict[str, list[int]]:
    """Count for each source and each of its facts the independent sources that have it too."""
    facts = list(facts)
    read = _Texts(texts, [fact.text for fact in facts])
    standings = {text.source_id: standing_of(text, text.text) for text in texts}
    parties = {text.source_id: party(text) for text in texts}
    found: dict[str, list[int]] = {}
    for fact, source_ids, _ in facts:
        having = read.having(fact, source_ids) | ({*source_ids} & parties.keys())
        for source_id in dict.fromkeys(source_ids):
            if own := parties.get(source_id):
                others = [other for other in having if not own.related(parties[other])]
                others = [other for other in others if not standings[source_id].related(standings[other])]
                sites = {parties[other].site for other in others if not read.repeat(source_id, other)}
                found.setdefault(source_id, []).append(len(sites))
    return found


OPENING_CHARS = 4_000
LEAST_OF_TITLE = 3  # least words of a title that names a source
_DOES = r"(?:replac|supersed|obsolet|updat|amend|supplement|revis|extend|correct|repeal)(?:e?s)"
_DONE = r"(?:replac|supersed|obsolet|updat|amend|supplement|revis|extend|correct|repeal)ed"
_FIELD = re.compile(rf"[ \t]*(?:(?P<later>{_DOES})|(?P<earlier>{_DONE}[ -]by))[ \t]*:[ \t]*(?P<what>\S.*)", re.I)
_SAYS = re.compile(
    r"\b(?:this|the present)\s+(?:[\w-]+\s+){1,3}?(?:(?:also|hereby|formally|partly)\s+)?"
    rf"(?:(?P<later>{_DOES}|is\s+an?\s+(?:amendment|supplement|addendum|update|revision|successor)\s+(?:to|of))|"
    rf"(?P<earlier>(?:is|was|has\s+been)\s+{_DONE}\s+by))\s+(?P<what>[^.;]{{3,160}})",
    re.I,
)
_TITLE = re.compile(r"(?:amendment|supplement|addendum|corrigendum|erratum|update)\b.*?\b(?:to|of)\b(?P<what>.+)", re.I)
_NUMBERED = re.compile(r"(?<![\w.-])\d{1,6}(?![\w-]|\.\d)")


class Standing(NamedTuple):
    """The names of a source, and the sources that it names as changed by it or as changing it."""

    names: frozenset[str]  # identifiers
    title: frozenset[str]  # terms
    later_than: tuple[str, ...]  # texts that name what it changes
    earlier_than: tuple[str, ...]  # texts that name what changes it

    def changes(self, other: Standing) -> bool:
        """Whether one of the two says that this one amends, supplements or replaces the other."""
        return any(self._named(text, other) for text in self.later_than) or any(
            other._named(text, self) for text in other.earlier_than
        )

    def related(self, other: Standing) -> bool:
        """Whether one of the two changes the other."""
        return self.changes(other) or other.changes(self)

    def _named(self, text: str, other: Standing) -> bool:
        """Whether a text of this source names another one."""
        series = {name.rsplit(" ", 1)[0] for name in self.names if re.fullmatch(r"[^\W\d]+ \d+", name)}
        named = {one.name for one in identifiers_of(text)}
        named |= {f"{word} {int(number)}" for word in series for number in _NUMBERED.findall(text)}
        by_title = len(other.title) >= LEAST_OF_TITLE and other.title <= set(terms(text)) and other.title != self.title
        return by_title or not named.isdisjoint(other.names - self.names)


def standing_of(source: Source, text: str) -> Standing:
    """Return a source's own statements on its relation to others; only the opening of its text is read."""
    fields = "\n".join(f"{name}: {value}" for name, value in source.fields.items())
    return _standing(source.title, source.url, fields, text[:OPENING_CHARS])


@lru_cache(maxsize=1_024)  # the sources of a run, asked for each claim
def _standing(title: str, url: str, fields: str, opening: str) -> Standing:
    said = list(_said(title, f"{fields}\n{_top(opening)}", opening))
    own = "" if _TITLE.match(title) else title  # else it names what it changes
    return Standing(
        names=frozenset(one.name for one in (*identifiers_of(own), *identifiers_of_file(url))),
        title=frozenset(query_terms(title)),
        later_than=tuple(what for what, later in said if later),
        earlier_than=tuple(what for what, later in said if not later),
    )


def _top(text: str) -> str:
    """Return the block that a text begins with, and that below a title; such lines further down are examples."""
    blocks = text.strip().split("\n\n", 2)
    return "\n".join(blocks[: 1 if "\n" in blocks[0] else 2])


def _said(title: str, header: str, text: str) -> Iterator[tuple[str, bool]]:
    """Yield the texts that name other sources, and whether the source changes these, or else is changed by them."""
    if found := _TITLE.match(title):
        yield found["what"], True
    for line in header.splitlines():
        if found := _FIELD.match(line):
            yield found["what"], bool(found["later"])
    for found in _SAYS.finditer(text):
        yield found["what"], bool(found["later"])
