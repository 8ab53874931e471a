"""Excerpts of which a later one replaces an earlier one, or two give different numbers: the reader gets both.

Only documents that state their dates replace each other. Without dates, nothing says which of two numbers holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fathom.contradictions.succession import Reading, differing, readings, replaces
from fathom.extractive.statements import Quotations
from fathom.retrieval.asked import times_of
from fathom.retrieval.relevance import Chosen, Found

COMPARED = 40  # best excerpts of a question that are compared
BESIDE = 2  # other excerpts that are shown with the chosen ones of a question


class Quoted(NamedTuple):
    """An excerpt as it is shown."""

    number: int  # of its text
    markdown: str


class Succession:
    """The excerpts that bear on a question; what replaces one of the best stands before it.

    Not where the question names a time: what held then is asked.
    """

    def __init__(self, quotations: Quotations, question: str) -> None:
        self._quotations = quotations
        self._newest = not times_of(question)
        self.found = quotations.rank(question)
        best: dict[Quoted, list[Found]] = {}  # some excerpts differ only in what counts as their lead-in
        for each in self.found[:COMPARED]:
            best.setdefault(Quoted(each.text, quotations.markdown(each, question)), []).append(each)
        self._compared = list(best)
        if self._newest and (order := self._in_order(self._compared)) != self._compared:
            moved = [each for quoted in order for each in best[quoted]]
            scores = [each.score for each in self.found]
            self.found = [
                each._replace(score=s) for each, s in zip([*moved, *self.found[COMPARED:]], scores, strict=True)
            ]
            self._compared = order

    def instead(self, quoted: Quoted) -> Quoted | None:
        """Return the newest excerpt that replaces another, unless what held earlier is asked."""
        successors = list(self._successors(quoted)) if self._newest else []
        if not successors:
            return None
        number, reading = max(successors, key=lambda one: self._quotations.dates[one[0]])
        holding = [each for each in self._compared if each.number == number and reading in self._readings(each)]
        return min(holding, key=lambda each: len(self._readings(each)))

    def shown(self, chosen: Iterable[Chosen]) -> list[Quoted]:
        """Return chosen excerpts, and behind each the best ones that it replaces or that give other numbers."""
        taken = [Quoted(each.text, each.markdown) for each in chosen]
        shown: list[Quoted] = []
        left = BESIDE
        for each in taken:
            shown.append(each)
            for other in sorted(self._compared, key=lambda one: len(self._readings(one))):
                if left and self._conflict(each, other, [*taken, *shown]):
                    shown.append(other)
                    left -= 1
        return [self.marked(each) for each in (self._in_order(shown) if self._newest else shown)]

    def marked(self, quoted: Quoted) -> Quoted:
        """Return an excerpt below a line that says since when something else holds, if it does."""
        dates = [self._quotations.dates[new] for new, _ in self._successors(quoted)]
        if not dates:
            return quoted
        part = "in part " if len(self._readings(quoted)) > 1 else ""
        return Quoted(quoted.number, f"Superseded {part}on {min(dates)}:\n\n{quoted.markdown}")

    def _readings(self, quoted: Quoted) -> Sequence[Reading]:
        return readings(quoted.markdown, self._quotations.titles[quoted.number])

    def _in_order(self, excerpts: Sequence[Quoted]) -> list[Quoted]:
        """Return excerpts, each behind those that replace it."""
        ordered = list(excerpts)
        for old in excerpts:
            successors = list(self._successors(old))
            for new in ordered[ordered.index(old) + 1 :] if successors else ():
                own = self._readings(new)
                if any(new.number == number and reading in own for number, reading in successors):
                    ordered.remove(new)
                    ordered.insert(ordered.index(old), new)
        return ordered

    def _successors(self, quoted: Quoted) -> Iterator[tuple[int, Reading]]:
        """Yield what later excerpts say instead of something that an excerpt says, with the numbers of their texts."""
        own = self._readings(quoted)
        for other in self._compared:
            if self._is_later(other.number, quoted.number):
                new = (reading for reading in self._readings(other) if any(replaces(reading, old) for old in own))
                yield from ((other.number, reading) for reading in new)

    def _conflict(self, quoted: Quoted, other: Quoted, shown: Sequence[Quoted]) -> bool:
        """Whether another excerpt says what one replaces, or gives other numbers, and is not yet shown."""
        first, second = (self._quotations.sources[each.number] for each in (quoted, other))
        if set(first) & set(second) or self._is_later(other.number, quoted.number):
            return False
        against = replaces if self._is_later(quoted.number, other.number) else differing
        mine = self._readings(quoted)
        theirs = self._readings(other)
        same = (each for each in shown if self._quotations.sources[each.number] == second)
        said = {reading.text for each in same for reading in self._readings(each)}
        new = said.isdisjoint(reading.text for reading in theirs)
        return new and any(against(own, their) for own in mine for their in theirs)

    def _is_later(self, number: int, other: int) -> bool:
        """Whether both texts state their dates, and that of the first is later as far as both say it."""
        new, old = self._quotations.dates[number], self._quotations.dates[other]
        known = min(len(new), len(old))
        return new[:known] > old[:known]
