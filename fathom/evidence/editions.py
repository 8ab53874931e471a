"""Which sources are later editions of others, or only newer, and may replace what these say.

An annual report restates the figures of the last one, a meeting takes back what an earlier one decided, a letter raises
a price of the list. Each source says what it says, so a check of a claim against its own source alone does not see it.
Whether a newer source does replace it, the judge decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date

from fathom.contradictions.succession import title_terms
from fathom.evidence.stored import StoredText
from fathom.sources.corroboration import site, standing_of
from fathom.sources.scoring import published_on

ALIKE = 0.6  # share of the shorter title's terms that the titles of two editions have in common
LEAST_ALIKE = 2  # of these terms
_NUMBER = re.compile(r"(?<![\w.])\d{1,8}(?:\.\d{1,8})*(?![\w])")
FAR_OFF = date(9000, 1, 1)  # taken for today: the order is the same on any day, and "3 days ago" the newest


class Editions:
    """The sources of a run, searched for later editions of some of them.

    Another source is a later edition if it says that it changes this one, or if both are of one site or the user's
    documents, and it is newer and its title has most of the same terms: "Minutes of 3 March" and "Minutes of 7 May".
    Without a date, the numbers tell which one of two is newer whose titles have no other difference: "Changelog 4.0"
    and "Changelog 4.1".
    """

    def __init__(self, texts: Iterable[StoredText]) -> None:
        self._texts = {text.source.source_id: text for text in reversed(list(texts))}
        self._titles = {key: title_terms(text.source.title) for key, text in self._texts.items()}
        self._published: dict[str, str] = {}
        self._later: dict[frozenset[str], list[str]] = {}
        self._newer: dict[frozenset[str], list[str]] = {}

    @property
    def renewed(self) -> list[str]:
        """The ids of the sources that have later editions."""
        return [source_id for source_id in self._texts if self.later_than([source_id])]

    def later_than(self, source_ids: Iterable[str]) -> list[str]:
        """Return the ids of the sources that are later editions of one of some sources, and older than none of them."""
        return self._after(source_ids, self.is_later, self._later)

    def newer_than(self, source_ids: Iterable[str]) -> list[str]:
        """Return the ids of the sources that are newer than one of some sources, and older than none of them.

        Both are of one site or the user's documents; later editions are left out.
        """
        ids = list(source_ids)
        later = self.later_than(ids)
        return [one for one in self._after(ids, self._is_dated_later, self._newer) if one not in later]

    def _after(
        self, source_ids: Iterable[str], follows: Callable[[str, str], bool], known: dict[frozenset[str], list[str]]
    ) -> list[str]:
        cited = frozenset(one for one in source_ids if one in self._texts)
        if cited not in known:
            known[cited] = [
                other
                for other in self._texts
                if other not in cited
                and any(follows(other, one) for one in cited)
                and not any(follows(one, other) for one in cited)
            ]
        return known[cited]

    def is_later(self, source_id: str, other: str) -> bool:
        """Whether a source is a later edition of another one."""
        later, earlier = self._texts[source_id], self._texts[other]
        if standing_of(later.source, later.text).changes(standing_of(earlier.source, earlier.text)):
            return True
        own, its = self._titles[source_id], self._titles[other]
        alike = len(own & its) >= max(LEAST_ALIKE, ALIKE * min(len(own), len(its)))
        return alike and self._are_together(source_id, other) and self._is_newer(source_id, other)

    def _are_together(self, source_id: str, other: str) -> bool:
        """Whether two sources are of one site, or both the user's documents."""
        one, two = self._texts[source_id].source, self._texts[other].source
        return one.kind == two.kind == "document" or site(one) == site(two)

    def _is_dated_later(self, source_id: str, other: str) -> bool:
        new, old = self._date(source_id), self._date(other)
        known = min(len(new), len(old))
        return new[:known] > old[:known] and self._are_together(source_id, other)

    def _is_newer(self, source_id: str, other: str) -> bool:
        """Whether one date is after the other as far as both are known: a year is not after a month of it."""
        new, old = self._date(source_id), self._date(other)
        if new and old:
            known = min(len(new), len(old))
            return new[:known] > old[:known]
        (words, numbers), (its_words, its_numbers) = (
            _numbered(self._texts[key].source.title) for key in (source_id, other)
        )
        return words == its_words and numbers > its_numbers

    def _date(self, source_id: str) -> str:
        if source_id not in self._published:
            text = self._texts[source_id]
            found = published_on(text.source, text.text, FAR_OFF)
            self._published[source_id] = found.stated if found else ""
        return self._published[source_id]


def _numbered(title: str) -> tuple[str, list[tuple[int, ...]]]:
    """Return a title without its numbers, and these: "Changelog 4.1" is ("changelog ", [(4, 1)])."""
    numbers = [tuple(map(int, found.split("."))) for found in _NUMBER.findall(title)]
    return _NUMBER.sub("", title).lower(), numbers
