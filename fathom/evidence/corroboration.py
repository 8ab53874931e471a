"""How a claim stands among all sources that were read, whichever it cites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from fathom.contradictions.finding import Said, find_contradictions
from fathom.evidence.checking import supporting
from fathom.evidence.searching import Search, Window
from fathom.models import Source
from fathom.models.claims import Corroboration
from fathom.retrieval.duplicates import is_near_duplicate
from fathom.sources.hosts import site_of
from fathom.sources.scoring import CREDIBLE
from fathom.text.sentences import split_sentences
from fathom.text.urls import host_of

NEAR = 0.5  # share of a claim's weight that a sentence about the same thing holds
MOST = 12  # passages looked at closely for one claim
AROUND = 600  # characters on each side of a passage by which a copied text is told
COPIED = 0.6  # share of sentences that two copies have in common
LEAST_CHARS = 40  # of a sentence that is not said alike by chance


class Corroborated(NamedTuple):
    """Where a claim stands, with the passages of each side, one for each source."""

    corroboration: Corroboration
    corroborating: list[Window]
    contradicting: list[Window]


def corroborate(claim: str, search: Search, credibility: Mapping[str, float]) -> Corroborated:
    """Return how a claim stands among all texts that are searched.

    Args:
        claim: one sentence.
        search: every text that was read.
        credibility: of sources, from 0 to 1; one that is not in it was not judged and counts as credible.
    """
    near = search.windows(claim, least=NEAR, most=2)[:MOST]
    carried = supporting(claim, near)
    sources = {window.text.source.source_id for window in carried}
    against: dict[str, Window] = {}
    for window in near:
        source_id = window.text.source.source_id
        if source_id not in sources and _contradicts(window.best.text, claim):
            against.setdefault(source_id, window)

    def credible(window: Window) -> bool:
        return credibility.get(window.text.source.source_id, CREDIBLE) >= CREDIBLE

    if any(map(credible, against.values())):
        corroboration = Corroboration.contradicted
    elif _verified(list(filter(credible, carried))):
        corroboration = Corroboration.verified
    else:
        corroboration = Corroboration.single_source if carried else Corroboration.unverified
    return Corroborated(corroboration, carried, list(against.values()))


def _contradicts(sentence: str, claim: str) -> bool:
    return bool(find_contradictions([Said(claim, ("claim",)), Said(sentence, ("source",))]))


def _verified(windows: Sequence[Window]) -> bool:
    """Whether two of some passages are independent: of different sites, and neither a copy of the other."""
    return any(_site(a.text.source) != _site(b.text.source) and not _copied(a, b) for a, b in combinations(windows, 2))


def _site(source: Source) -> str:
    """Return who publishes a source; of local documents each is its own, all of Python's reference are one."""
    host = host_of(source.url)
    scheme = source.url.partition(":")[0]
    return site_of(host) if host else "python" if scheme == "python" else source.url


def _copied(a: Window, b: Window) -> bool:
    """Whether most sentences around two passages are the same; a single short one may be so by chance."""
    small, large = sorted((_around(a), _around(b)), key=len)
    same = sum(any(is_near_duplicate(sentence, other) for other in large) for sentence in small)
    return bool(small) and same >= COPIED * len(small)


def _around(window: Window) -> list[str]:
    text = window.text.text[max(0, window.start - AROUND) : window.end + AROUND]
    return [sentence.clean for sentence in split_sentences(text) if len(sentence.text) >= LEAST_CHARS]
