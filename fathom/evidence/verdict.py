"""One claim against the texts of the sources it cites: the passages that support it, a verdict, and what is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from fathom.evidence.complaints import Complaint, agreeing, complaints_of
from fathom.evidence.passages import Passage, Search
from fathom.evidence.stored import StoredText
from fathom.evidence.support import support
from fathom.models import Verdict

SUPPORTED, WEAK = 0.6, 0.4  # least scores; see docs/evidence.md for what they cost and buy
SCATTERED = 0.45  # of a longer stretch, where words meet by chance more often
GRAVE, SLIGHT = 0.3, 0.1  # what a complaint costs a passage beside others
MAX_PASSAGES = 3
ADDED = 0.05  # that a further passage must add
CONSIDERED = 6  # passages that are tried as further ones
APART = Complaint("the quote has these words, but far from each other", grave=False)


class Check(NamedTuple):
    """The result of a check. `passages` are the best first; those of an unsupported claim only come nearest to it."""

    verdict: Verdict
    score: float
    passages: list[Passage]
    complaints: list[str]


class _Rated(NamedTuple):
    """Passages, rated by how they support a claim together."""

    passages: list[Passage]
    score: float
    complaints: list[Complaint]

    @property
    def worth(self) -> float:
        return self.score - sum(GRAVE if complaint.grave else SLIGHT for complaint in self.complaints)

    @property
    def grave(self) -> bool:
        return any(complaint.grave for complaint in self.complaints)

    @property
    def verdict(self) -> Verdict:
        if self.score < WEAK or self.grave:
            return Verdict.unsupported
        return Verdict.weak if self.score < SUPPORTED or self.complaints else Verdict.supported


def check(claim: str, search: Search, source_ids: Collection[str] | None = None) -> Check:
    """Check a claim against the texts of some sources, or of all that are searched.

    One passage has to support it, or up to three together, of which each says a good part. A claim whose numbers,
    dates or names they lack is unsupported. One that they seem to deny is weak, and so is one in other words than
    theirs if most of its words are near each other in a source.
    """
    rated = _rated(claim, search.passages(claim, source_ids))
    chosen = _together(claim, rated) if rated else None
    if not chosen or (chosen.score < WEAK and not chosen.grave):
        chosen = _scattered(claim, search, source_ids) or chosen
    if not chosen:
        return Check(Verdict.unsupported, 0.0, [], ["no cited source has a passage on this"])
    passages = chosen.passages + [passage for passage in _supporting(rated) if passage not in chosen.passages]
    complaints = [complaint.text for complaint in chosen.complaints]
    return Check(chosen.verdict, round(chosen.score, 4), passages[:MAX_PASSAGES], complaints)


def check_texts(claim: str, texts: Sequence[StoredText]) -> Check:
    """Check one claim against some texts."""
    return check(claim, Search(texts))


def supporting(claim: str, passages: Iterable[Passage]) -> list[Passage]:
    """Return of each source the best of some passages, if it supports the claim alone."""
    return _supporting(_rated(claim, passages))


def _rated(claim: str, passages: Iterable[Passage]) -> list[_Rated]:
    return sorted((_rate(claim, [passage]) for passage in passages), key=lambda found: -found.worth)


def _supporting(rated: Sequence[_Rated]) -> list[Passage]:
    best: dict[str, _Rated] = {}
    for found in rated:
        best.setdefault(found.passages[0].text.source.source_id, found)
    return [found.passages[0] for found in best.values() if found.verdict is Verdict.supported]


def _together(claim: str, rated: Sequence[_Rated]) -> _Rated:
    """Return the best passage, with others that say what it does not if it does not support the claim alone."""
    chosen = rated[0]
    others = [found.passages[0] for found in rated[1 : 1 + CONSIDERED] if found.score >= WEAK]
    while chosen.verdict is not Verdict.supported and len(chosen.passages) < MAX_PASSAGES:
        options = [_rate(claim, [*chosen.passages, other]) for other in others if other not in chosen.passages]
        better = max(options, key=lambda found: found.worth, default=chosen)
        if better.worth < chosen.worth + ADDED:
            break
        chosen = better
    return chosen


def _scattered(claim: str, search: Search, source_ids: Collection[str] | None) -> _Rated | None:
    """Return the stretch of a source that has enough of a claim's words, though they are not said together."""
    passage = search.stretch(claim, source_ids)
    found = _rate(claim, [passage]) if passage else None
    return found._replace(complaints=[APART, *found.complaints]) if found and found.score >= SCATTERED else None


def _rate(claim: str, passages: list[Passage]) -> _Rated:
    quotes = [passage.words for passage in passages]
    score = support(claim, [*quotes, *agreeing(claim, quotes)])  # a quote with "eight" supports 8
    return _Rated(passages, score, complaints_of(claim, passages))
