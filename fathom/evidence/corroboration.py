"""How many independent sources support a claim, of all that were read, and which contradict it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from fathom.contradictions.finding import Said, find_contradictions
from fathom.evidence.passages import Passage, Search
from fathom.evidence.rows import nearest_rows
from fathom.evidence.verdict import supporting, verbatim
from fathom.models.claims import Corroboration
from fathom.retrieval.duplicates import is_near_duplicate
from fathom.sources.corroboration import HELD, party
from fathom.sources.scoring import CREDIBLE
from fathom.text.blocks import Kind
from fathom.text.sentences import split_sentences
from fathom.text.terms import query_terms

NEAR = 0.5  # share of a claim's weight that a sentence about the same thing has
MAX_PASSAGES = 12  # passages looked at closely for one claim
AROUND = 600  # characters on each side of a passage that are compared to find a copied text
SAME = 0.4  # of that sentence's words that the claim has: in a longer one the words are met by chance
LEAST_TERMS = 3
COPIED = 0.6  # share of sentences that two copies have in common
LEAST_CHARS = 40  # of a sentence that is not said alike by chance


class Corroborated(NamedTuple):
    """The corroboration of a claim, with the passages on each side, one for each source."""

    corroboration: Corroboration
    corroborating: list[Passage]
    contradicting: list[Passage]


def corroborate(
    claim: str,
    search: Search,
    credibility: Mapping[str, float],
    kind: Kind = "prose",
    cited: Collection[str] = (),
) -> Corroborated:
    """Return the corroboration of a claim, of a kind as for `check`, by all texts that are searched.

    A source that the claim does not cite must say the same in one sentence. `credibility` is that of the sources, from
    0 to 1; one that is not in it was not judged and counts as credible.
    """
    near = search.passages(claim, least=NEAR, most=2)[:MAX_PASSAGES]
    support = [
        passage
        for passage in _supporting(claim, near, search, kind)
        if kind in ("table", "code") or passage.text.source.source_id in cited or _says_the_same(claim, passage)
    ]
    sources = {passage.text.source.source_id for passage in support}
    against: dict[str, Passage] = {}
    for passage in near:
        source_id = passage.text.source.source_id
        said = [Said(claim, ("claim",)), Said(passage.best.text, ("source",))]
        if source_id not in sources and find_contradictions(said):
            against.setdefault(source_id, passage)

    def credible(passage: Passage) -> bool:
        return credibility.get(passage.text.source.source_id, CREDIBLE) >= CREDIBLE

    if any(map(credible, against.values())):
        corroboration = Corroboration.contradicted
    elif any(_independent(*pair) for pair in combinations(filter(credible, support), 2)):
        corroboration = Corroboration.verified
    else:
        corroboration = Corroboration.single_source if support else Corroboration.unverified
    return Corroborated(corroboration, support, list(against.values()))


def _supporting(claim: str, near: Sequence[Passage], search: Search, kind: Kind) -> list[Passage]:
    """Return the passages that support a claim alone, one for each source: for a row one row, for code the code."""
    if kind == "code":
        return verbatim(claim, search, None, kind)
    if kind != "table":
        return supporting(claim, near)
    rows = nearest_rows(claim, search)
    found = rows.passages if rows and not rows.missing else []
    known = {passage.text.source.source_id for passage in found}
    prose = supporting(claim, (passage for passage in near if passage.best.kind != "table"))
    return found + [passage for passage in prose if passage.text.source.source_id not in known]


def _says_the_same(claim: str, passage: Passage) -> bool:
    """Whether the best sentence of a passage has most of a claim's words, and little else beside them."""
    wanted, held = set(query_terms(claim)), set(query_terms(passage.best.text))
    shared = wanted & held
    return len(shared) >= max(LEAST_TERMS, HELD * len(wanted), SAME * len(held))


def _independent(a: Passage, b: Passage) -> bool:
    """Whether two passages are of unrelated sources and most sentences around them are not the same."""
    if party(a.text.source).related(party(b.text.source)):
        return False
    small, large = sorted((_around(a), _around(b)), key=len)
    same = sum(any(is_near_duplicate(sentence, other) for other in large) for sentence in small)
    return not small or same < COPIED * len(small)


def _around(passage: Passage) -> list[str]:
    text = passage.text.text[max(0, passage.start - AROUND) : passage.end + AROUND]
    return [sentence.clean for sentence in split_sentences(text) if len(sentence.text) >= LEAST_CHARS]
