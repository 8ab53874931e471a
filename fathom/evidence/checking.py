"""One claim against the texts of the sources it cites: the passages that carry it, a verdict, and what is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from fathom.evidence.comparing import Objection, Passage, agreeing, objections
from fathom.evidence.locating import StoredText
from fathom.evidence.searching import Search, Window
from fathom.evidence.support import support
from fathom.models.claims import Verdict

SUPPORTED, WEAK = 0.6, 0.4  # least scores; see docs/evidence.md for what they cost and buy
SCATTERED = 0.45  # of a longer stretch, where words meet by chance more often
GRAVE, SLIGHT = 0.3, 0.1  # what an objection costs a passage beside others
MOST_PASSAGES = 3
BEFORE = 600  # characters before a passage in which the names stand that its pronouns mean
ADDED = 0.05  # that a further passage must add
CONSIDERED = 6  # passages that are tried as further ones


class Check(NamedTuple):
    """What came of a check. `passages` are the best first; those of an unsupported claim only come nearest to it."""

    verdict: Verdict
    score: float
    passages: list[Window]
    complaints: list[str]


class _Rated(NamedTuple):
    """Passages, rated as what carries a claim together."""

    windows: list[Window]
    score: float
    found: list[Objection]

    @property
    def worth(self) -> float:
        return self.score - sum(GRAVE if objection.grave else SLIGHT for objection in self.found)

    @property
    def source_id(self) -> str:
        return self.windows[0].text.source.source_id

    @property
    def grave(self) -> bool:
        return any(objection.grave for objection in self.found)

    @property
    def verdict(self) -> Verdict:
        if self.score < WEAK or self.grave:
            return Verdict.unsupported
        return Verdict.weak if self.score < SUPPORTED or self.found else Verdict.supported


def check(claim: str, search: Search, source_ids: Iterable[str] | None = None) -> Check:
    """Check a claim against the texts of some sources, or of all that are searched.

    One passage is to carry it, or up to three together of which each says a good part. A claim whose numbers, dates or
    names they lack is unsupported; one that they seem to deny is weak, and so is one in other words than theirs, whose
    own are near each other in a source all the same.
    """
    ids = None if source_ids is None else frozenset(source_ids)
    rated = [_rate(claim, [window]) for window in search.windows(claim, ids)]
    rated.sort(key=lambda found: -found.worth)
    chosen = _together(claim, rated) if rated else None
    if not chosen or (chosen.score < WEAK and not chosen.grave):
        chosen = _scattered(claim, search, ids) or chosen
    if not chosen:
        return Check(Verdict.unsupported, 0.0, [], ["no cited source has a passage on this"])
    windows = chosen.windows + [
        found.windows[0]
        for found in _best_of_each_source(rated)
        if found.verdict is Verdict.supported and found.windows[0] not in chosen.windows
    ]
    complaints = [objection.text for objection in chosen.found]
    return Check(chosen.verdict, round(chosen.score, 4), windows[:MOST_PASSAGES], complaints)


def check_texts(claim: str, texts: Sequence[StoredText]) -> Check:
    """Check one claim against some texts."""
    return check(claim, Search(texts, [claim]))


def supporting(claim: str, windows: Iterable[Window]) -> list[Window]:
    """Return of each source the best of some passages, if it carries the claim alone."""
    rated = sorted((_rate(claim, [window]) for window in windows), key=lambda found: -found.worth)
    return [found.windows[0] for found in _best_of_each_source(rated) if found.verdict is Verdict.supported]


def _best_of_each_source(rated: Sequence[_Rated]) -> list[_Rated]:
    """Return the first of each source."""
    best: dict[str, _Rated] = {}
    for found in rated:
        best.setdefault(found.source_id, found)
    return list(best.values())


def _together(claim: str, rated: Sequence[_Rated]) -> _Rated:
    """Return the best passage, with others that say what it does not where it does not carry the claim alone."""
    chosen = rated[0]
    others = [found.windows[0] for found in rated[1 : 1 + CONSIDERED] if found.score >= WEAK]
    while chosen.verdict is not Verdict.supported and len(chosen.windows) < MOST_PASSAGES:
        options = [_rate(claim, [*chosen.windows, w]) for w in others if w not in chosen.windows]
        better = max(options, key=lambda found: found.worth, default=chosen)
        if better.worth < chosen.worth + ADDED:
            break
        chosen = better
    return chosen


def _scattered(claim: str, search: Search, source_ids: Collection[str] | None) -> _Rated | None:
    """Return the stretch of a source that has enough of a claim's words, though they are not said together."""
    window = search.stretch(claim, source_ids)
    found = _rate(claim, [window]) if window else None
    if not found or found.score < SCATTERED:
        return None
    doubt = Objection("its words stand in the quote, but apart from each other", grave=False)
    return found._replace(found=[doubt, *found.found])


def _rate(claim: str, windows: list[Window]) -> _Rated:
    quotes = [window.words for window in windows]
    passages = [
        Passage(
            quote=window.words,
            best=window.best.text,
            near=f"{window.text.source.title}\n{window.text.text[max(0, window.start - BEFORE) : window.start]}",
            source=window.text.text,
        )
        for window in windows
    ]
    score = support(claim, [*quotes, *agreeing(claim, quotes)])  # 8 is said where eight stands
    return _Rated(windows, score, objections(claim, passages))
