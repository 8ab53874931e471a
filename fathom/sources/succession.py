"""Which source changes another: it says that it amends, supplements or replaces it, or that the other does so.

Two such sources are not independent, and where the newer one says otherwise, they do not disagree. Read are header
fields (`Replaces: 12`, `Superseded-By: ...`), the title ("Supplement to ...") and the opening ("this standard updates
..."). A source is named by an identifier in its title or address, a bare number meaning one of the own series, or by
all words of its title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from fathom.models import Source
from fathom.retrieval.identifiers import identifiers_of, identifiers_of_file
from fathom.text.terms import query_terms, terms

OPENING_CHARS = 4_000
LEAST_TERMS = 3  # of a title that names a source by its words
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
_NUMBER = re.compile(r"(?<![\w.-])\d{1,6}(?![\w-]|\.\d)")


class Standing(NamedTuple):
    """How a source is named, and which it names as changed by it or as changing it."""

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
        named |= {f"{word} {int(number)}" for word in series for number in _NUMBER.findall(text)}
        by_title = len(other.title) >= LEAST_TERMS and other.title <= set(terms(text)) and other.title != self.title
        return by_title or not named.isdisjoint(other.names - self.names)


def standing_of(source: Source, text: str) -> Standing:
    """Return what a source says of its place among others; of its text the opening is read."""
    fields = "\n".join(f"{name}: {value}" for name, value in source.fields.items())
    return _standing(source.title, source.url, fields, text[:OPENING_CHARS])


@lru_cache(maxsize=1_024)  # the sources of a run, asked for each claim
def _standing(title: str, url: str, fields: str, opening: str) -> Standing:
    said = list(_said(title, f"{fields}\n{opening}"))
    own = "" if _TITLE.match(title) else title  # else it names what it changes
    return Standing(
        names=frozenset(one.name for one in (*identifiers_of(own), *identifiers_of_file(url))),
        title=frozenset(query_terms(title)),
        later_than=tuple(what for what, later in said if later),
        earlier_than=tuple(what for what, later in said if not later),
    )


def _said(title: str, text: str) -> Iterator[tuple[str, bool]]:
    """Yield the texts that name other sources, and whether the source changes these, or else is changed by them."""
    if found := _TITLE.match(title):
        yield found["what"], True
    for line in text.splitlines():
        if found := _FIELD.match(line):
            yield found["what"], bool(found["later"])
    for found in _SAYS.finditer(text):
        yield found["what"], bool(found["later"])
