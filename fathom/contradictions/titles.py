"""What a source is about by its title: the names in it, each with its version or model, and its years.

Two titles that name different things are about different things, however many other words they share: "Norrholm plans
for ten years" and "Vester plans for ten years", "Aurora 2 manual" and "Aurora 3 release notes".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from fathom.facts.extraction import facts_of
from fathom.text.terms import query_terms, terms

_YEAR = re.compile(r"(?<![\w.])(?:19|20)\d\d(?![\w.])")
# The publisher, behind what a page is about: "Norrholm - Encyclopedia", "Norrholm | Coast News".
_PUBLISHER = re.compile(r"(?<=\S)\s+[|–—-]\s+[^|–—\d]+\Z")
_MARK = re.compile(r"\s+(?:v|version |no\.? )?(?!(?:19|20)\d\d\b)(?P<mark>[A-Z](?![\w'’.])|[A-Z]{0,3}\d[\w.-]*\b)")


class Named(NamedTuple):
    """A proper name as terms."""

    words: frozenset[str]
    mark: str = ""  # the version, model or number behind it
    sure: bool = True  # false for a first word, which has a capital anyway, and for what stands beside "the company"


class Title(NamedTuple):
    """What a title says of its source."""

    words: frozenset[str]  # terms; empty: no title is known
    names: tuple[Named, ...]
    years: frozenset[str]


@lru_cache(maxsize=1_024)
def title_of(text: str) -> Title:
    """Read a title, behind which the words of an address may stand."""
    if not text:
        return Title(frozenset(), (), frozenset())
    # What stands before a comma opens no sentence: "Norrholm, Vester".
    facts = facts_of(_PUBLISHER.sub("", text).replace(",", " ·"))
    names = []
    for name in facts.names:
        mark = _mark(facts.text, name.end)
        sure = not name.opening or len(name.words) > 1 or bool(mark)
        names.append(Named(frozenset(terms(" ".join(name.words))), mark, sure))
    if not any(name.sure for name in names):
        names = [name._replace(sure=True) for name in names]
    return Title(frozenset(query_terms(text)), tuple(names), frozenset(_YEAR.findall(text)))


def _mark(text: str, end: int) -> str:
    found = _MARK.match(text, end)
    return found["mark"].lower() if found else ""


def names_apart(mine: Iterable[Named], yours: Iterable[Named], ordinary: frozenset[str]) -> bool | None:
    """Return whether each of two texts surely names something that the other does not; None if one may name nothing.

    Words that are `ordinary`, as terms, are no names, though a title may give them a capital.
    """
    one, other = list(_proper(mine, ordinary)), list(_proper(yours, ordinary))
    if not all(any(name.sure for name in names) for names in (one, other)):
        return None
    return _lacking(one, other) and _lacking(other, one)


def _proper(names: Iterable[Named], ordinary: frozenset[str]) -> Iterator[Named]:
    for name in names:
        if words := name.words - ordinary:
            yield name._replace(words=words)


def _lacking(names: Sequence[Named], others: Sequence[Named]) -> bool:
    """Whether one of some names is neither among others nor a part of one, nor has one as its part."""
    return any(name.sure and not any(_same(name, other) for other in others) for name in names)


def _same(a: Named, b: Named) -> bool:
    return _related(a, b) and (a.mark == b.mark or not a.mark or not b.mark)


def _related(a: Named, b: Named) -> bool:
    return a.words <= b.words or b.words <= a.words


def other_versions(a: Title, b: Title) -> bool:
    """Whether two titles name different versions or models of one thing, and none in common."""
    pairs = [(x.mark, y.mark) for x, y in product(a.names, b.names) if x.mark and y.mark and _related(x, y)]
    return bool(pairs) and all(mark != other for mark, other in pairs)


def of_other_years(a: Title, b: Title) -> bool:
    """Whether two titles are the same but for their years, as those of annual reports are."""
    rest, other = a.words - a.years, b.words - b.years
    return bool(a.years and b.years) and not a.years & b.years and (rest <= other or other <= rest)


def alike(a: Title, b: Title, share: float) -> bool:
    """Whether two titles share so much of the shorter one's words, or one of them is not known."""
    return not a.words or not b.words or len(a.words & b.words) >= share * min(len(a.words), len(b.words))


def one_pattern(a: Title, b: Title) -> bool:
    """Whether two titles are the same but for what they name: "Norrholm plans", "Vester plans"."""
    return bool(_unnamed(a)) and _unnamed(a) == _unnamed(b)


def _unnamed(title: Title) -> frozenset[str]:
    return title.words.difference(title.years, *(name.words for name in title.names))
