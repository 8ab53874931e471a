"""The independent sources that support a claim, among all that were read, and the sources that contradict it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from fathom.contradictions.finding import Said, find_contradictions
from fathom.contradictions.titles import title_of
from fathom.evidence.complaints import agreeing
from fathom.evidence.editions import Editions
from fathom.evidence.likeness import cells_of, has_below, nearest_rows, supporting, verbatim
from fathom.evidence.passages import Search, SourcePassage
from fathom.facts.extraction import facts_of, figures_apart
from fathom.models.evidence import Corroboration, Verdict
from fathom.models.plan import Refuted
from fathom.sources.corroboration import HELD, party
from fathom.sources.scoring import CREDIBLE
from fathom.text.blocks import Kind
from fathom.text.parsed import parse
from fathom.text.sentences import split_sentences
from fathom.text.terms import is_near_duplicate, query_terms, terms

NEAR = 0.5  # share of a claim's weight that a sentence about the same thing has
MAX_PASSAGES = 12  # passages looked at closely for one claim
AROUND = 600  # characters on each side of a passage that are compared to find a copied text
SAME = 0.4  # share of that sentence's words that the claim has: a longer sentence has the words by chance
RETOLD = 0.5  # share of the words of a refuted statement, or of those that both have, that a claim with its figures has
LEAST_SHARED = 2  # words that both have and a claim too
REWORDED = 0.6  # share of the words of a refuted statement without figures that a claim has which tells it
OPENING = 3  # words with which a statement names what it is about
LEAST_TERMS = 3
COPIED = 0.6  # share of sentences that two copies have in common
_BEFORE = re.compile(
    r"\b(?:instead of|rather than|in place of|no longer|and not|statt|anstelle von|nicht mehr|und nicht)\s+"
    r"(?P<figure>(?:\S+\s+){0,2}?\d\S*(?:\s+\w+)?)",
    re.IGNORECASE,
)
LEAST_CHARS = 40  # words of a sentence that two texts do not share by chance


class Judged(NamedTuple):
    """A judge's verdict on a claim, and the passages that decided."""

    verdict: Verdict
    passages: list[SourcePassage]


class Corroborated(NamedTuple):
    """The corroboration of a claim, with the passages on each side, one for each source."""

    corroboration: Corroboration
    corroborating: list[SourcePassage]
    contradicting: list[SourcePassage]


def corroborate(
    claim: str,
    search: Search,
    credibility: Mapping[str, float],
    kind: Kind = "prose",
    cited: Collection[str] = (),
    *,
    head: str = "",
    judged: Judged | None = None,
    otherwise: Sequence[SourcePassage] = (),
) -> Corroborated:
    """Return the corroboration of a claim by all texts that are searched; `kind` is as for `nearest`.

    `head` has the names of the columns of a row: a row with the same figures in other columns says something else.

    `otherwise` has passages of other sources that are known to correct, dispute or replace what it tells. They count as
    `outweighs` says; what only words find counts if its source is credible.

    A source that the claim does not cite must say the same in one sentence. A judge's verdict on the cited sources
    counts more than their words. `credibility` rates the sources from 0 to 1; a source without a rating counts as
    credible.
    """
    near = search.passages(claim, least=NEAR, most=2)[:MAX_PASSAGES]
    support = _support(claim, near, search, kind, head, cited)
    against: dict[str, SourcePassage] = {}
    if judged:
        own, other = ([], judged.passages) if judged.verdict is Verdict.contradicted else (judged.passages, [])
        named = {passage.text.source.source_id for passage in judged.passages}
        support = [*_one_each(own), *(p for p in support if p.text.source.source_id not in named)]
        if judged.verdict.objects:
            support = [p for p in support if p.text.source.source_id not in cited]
        against = {passage.text.source.source_id: passage for passage in reversed(other)}
    sources = {passage.text.source.source_id for passage in support} | (set(cited) if judged else set())
    for passage in (*otherwise, *_saying_otherwise(claim, near, sources, cited, search)):
        against.setdefault(passage.text.source.source_id, passage)

    def credible(passage: SourcePassage) -> bool:
        return is_credible(passage.text.source.source_id, credibility)

    said = [passage for passage in [*support, *(near if judged else ())] if passage.text.source.source_id in cited]
    cells = _by_cell(claim, search, said, head) if kind == "table" and not (judged and judged.verdict.objects) else []
    if all(cells):
        known = {passage.text.source.source_id for passage in support}
        support += _one_each([p for cell in cells for p in cell if p.text.source.source_id not in known])
    known = {passage.text.source.source_id for passage in otherwise}
    if any(credible(one) or (key in known and outweighs(key, cited, credibility)) for key, one in against.items()):
        corroboration = Corroboration.contradicted
    elif all(_two_independent(filter(credible, each), search.editions) for each in cells or _by_figure(claim, support)):
        corroboration = Corroboration.verified
    else:
        corroboration = Corroboration.single_source if support else Corroboration.unverified
    return Corroborated(corroboration, support, list(against.values()))


def _saying_otherwise(
    claim: str, near: Sequence[SourcePassage], sources: Collection[str], cited: Collection[str], search: Search
) -> Iterator[SourcePassage]:
    """Yield the passages of sources other than a claim's that contradict it by their words."""
    kept = {text.source.source_id for text in search.texts}.intersection([*sources, *cited])
    titles = {text.source.title for text in search.texts if text.source.source_id in cited} or {""}
    for passage in near:
        if any(search.editions.is_later(one, passage.text.source.source_id) for one in kept):
            continue
        if passage.text.source.source_id not in sources and any(_contradicts(passage, claim, one) for one in titles):
            yield passage


def is_credible(source_id: str, credibility: Mapping[str, float]) -> bool:
    """Whether a source counts for or against a claim: its rating, 0 to 1, is high enough, or it has none."""
    return credibility.get(source_id, CREDIBLE) >= CREDIBLE


def outweighs(source_id: str, cited: Iterable[str], credibility: Mapping[str, float]) -> bool:
    """Whether a source that is known to say otherwise counts against a claim and the sources that it cites.

    It is credible, or no less so than they are: where all pages are of unknown sites, the seller's own offer still
    corrects what an advertisement says.
    """
    most = max((credibility.get(one, CREDIBLE) for one in cited), default=CREDIBLE)
    return credibility.get(source_id, CREDIBLE) >= min(CREDIBLE, most)


def _support(  # noqa: PLR0917 - what is asked of `corroborate`
    claim: str, near: Sequence[SourcePassage], search: Search, kind: Kind, head: str, cited: Collection[str]
) -> list[SourcePassage]:
    """Return the passages that support a claim; of sources that it does not cite, those that say the same."""
    found = _supporting(claim, near, search, kind, head)
    if kind in ("table", "code"):
        return found
    found = [p for p in found if p.text.source.source_id in cited or _says_the_same(claim, p)]
    known = {passage.text.source.source_id for passage in found}
    # Where many lines are alike, as in a log, the line itself may not be among the nearest.
    own = verbatim(claim, search, cited, kind)
    return [*found, *(passage for passage in own if passage.text.source.source_id not in known)]


def _supporting(
    claim: str, near: Sequence[SourcePassage], search: Search, kind: Kind, head: str
) -> list[SourcePassage]:
    """Return the passages that support a claim alone, one for each source: for a row one row, for code the code."""
    if kind == "code":
        return verbatim(claim, search, None, kind)
    if kind != "table":
        return supporting(claim, near)
    rows = nearest_rows(claim, search, head=head)
    found = rows.passages if rows and not rows.missing else []
    known = {passage.text.source.source_id for passage in found}
    prose = supporting(claim, (passage for passage in near if passage.best.kind != "table"))
    return found + [passage for passage in prose if passage.text.source.source_id not in known]


def _by_cell(claim: str, search: Search, said: Sequence[SourcePassage], head: str) -> list[list[SourcePassage]]:
    """Return for each figure of a row the passages that give it for the row's subject, one for each source.

    The passages `said` by the sources that the row cites need not name the subject.
    """
    subject, *cells = cells_of(claim)
    about = set(query_terms(subject))
    titled = search.titled(about)
    other_rows = [row.passage.best for row in search.rows(claim) if not has_below(row, claim, head)]
    found: list[list[SourcePassage]] = []
    for cell in cells:
        own = facts_of(cell)
        if not (own.numbers or own.dates) or not about:
            continue
        near = search.passages(f"{subject} {cell}", least=NEAR, most=2)[:MAX_PASSAGES]
        near = [p for p in near if about <= set(terms(f"{p.text.source.title} {p.words}"))]
        near += search.passages(cell, titled, least=NEAR, most=2)[:MAX_PASSAGES] if titled else []
        near = [passage for passage in near if passage.best not in other_rows]
        found.append(_one_each([passage for passage in [*near, *said] if _gives(passage, cell)]))
    return found


def _by_figure(claim: str, support: Sequence[SourcePassage]) -> list[Sequence[SourcePassage]]:
    """Return all passages that support a claim, then for each figure that some of them give the ones that give it.

    Two sources that each say a part of a claim are no two witnesses of it. If none gives any of its figures, they were
    worked out from what all say together, and nobody witnesses them; but number words may be the writer's own counting.
    Of a claim without figures, a witness has most of the words that all passages together have of it.
    """
    figures = _figures(claim)
    given = list(filter(None, ([passage for passage in support if _gives(passage, one)] for one in figures)))
    counting = {number.text for number in facts_of(claim).numbers if number.spelled}
    if given:
        return [support, *given]
    wanted = set(query_terms(claim)) if counting.issuperset(figures) else set[str]()
    held = [wanted.intersection(query_terms(passage.words)) for passage in support]
    most = HELD * len(set[str]().union(*held))
    return [[passage for passage, own in zip(support, held, strict=True) if wanted and len(own) >= most]]


def _gives(passage: SourcePassage, cell: str) -> bool:
    """Whether a passage has every number and date of a cell."""
    own = facts_of(cell)
    return len(agreeing(cell, [passage.words])) >= len(own.numbers) + len(own.dates)


def _one_each(passages: Sequence[SourcePassage]) -> list[SourcePassage]:
    return list({passage.text.source.source_id: passage for passage in reversed(passages)}.values())[::-1]


def _contradicts(passage: SourcePassage, claim: str, title: str) -> bool:
    """Whether a passage contradicts a claim that rests on a source of this title: it says what the claim is about.

    A text that has a name of that title is about the same, though its own title may only name who publishes it.
    """
    held = parse(passage.text.text).occurrences
    known = any(name.words <= held.keys() for name in title_of(title).names)
    other = "" if known else passage.text.source.title
    pair = [Said(claim, ("claim",), title), Said(passage.best.text, ("source",), other)]
    return bool(find_contradictions(pair))


def refuting(claim: str, cited: Collection[str], refuted: Refuted, search: Search) -> list[SourcePassage]:
    """Return the passages of the correcting sources, if a claim tells what they correct and cites none of them.

    It tells this with the figures in which the two statements differ, and without the right ones; what a row says, it
    tells with the row's first cell and one of these figures. If the statements differ in words alone, it tells it with
    most words, or with a figure of it ("the 41 % is not valid") and half of the words that only it has. If
    nothing settles which holds, it may cite both sides, and tells one of them all the same. Of each correcting source,
    the best passage with the right figures is returned.
    """
    if refuted.source_ids.isdisjoint(cited) or (refuted.settled and not refuted.by_source_ids.isdisjoint(cited)):
        return []
    wrong, right = _figures_apart(refuted)
    if right and not wrong:  # "it is 2,500 EUR, and not 1,000 EUR"
        wrong = _figures(refuted.said)
    said, instead, held = (set(query_terms(text)) for text in (refuted.said, refuted.instead, claim))
    own = said - instead
    subject, *cells = cells_of(refuted.said)
    if wrong and cells:
        tells = set(query_terms(subject)) <= held and any(
            _has(claim, [figure]) for figure in _figures_beside(" | ".join(cells), refuted.instead)
        )
    elif wrong:
        shared = said & instead  # what the two are about
        about = len(shared & held) >= max(LEAST_SHARED, RETOLD * len(shared))
        tells = _has(claim, wrong) and (about or len(said & held) >= RETOLD * len(said))
    elif (instead - said - _subject(refuted.instead, claim)) & held:
        tells = False
    elif own and any(_has(claim, [figure]) for figure in _figures(refuted.said)):
        tells = len(own & held) >= RETOLD * len(own)
    else:
        least = max(min(LEAST_SHARED, len(own)), REWORDED * len(own))
        tells = len(own & held) >= least and len(said & held) >= REWORDED * len(said)
    if not tells or any(_has(claim, [figure]) for figure in right):
        return []
    found = search.passages(refuted.instead, refuted.by_source_ids, least=0.0, most=MAX_PASSAGES if right else 1)
    return _one_each([one for one in found if not right or any(_has(one.words, [figure]) for figure in right)])


def _subject(statement: str, claim: str) -> set[str]:
    """Return the terms of the names with which a statement begins and that a claim has: what both are about."""
    opening = set(query_terms(" ".join(statement.split()[:OPENING])))
    return opening.intersection(query_terms(" ".join(word for name in facts_of(claim).names for word in name.words)))


def corrects(said: str, cited: Collection[str], refuted: Refuted) -> bool:
    """Whether a sentence says by a correcting source what holds instead of a refuted statement."""
    if refuted.by_source_ids.isdisjoint(cited):
        return False
    if right := _figures_apart(refuted)[1]:
        return any(_has(said, [figure]) for figure in right)
    own = set(query_terms(refuted.instead)).difference(query_terms(refuted.said))
    return len(own.intersection(query_terms(said))) >= RETOLD * len(own)


@lru_cache(maxsize=256)
def _figures_apart(refuted: Refuted) -> tuple[list[str], list[str]]:
    """Return the figures of a refuted statement that are other than those of the right one, and these."""
    pairs = ((refuted.said, refuted.instead), (refuted.instead, refuted.said))
    wrong, right = (figures_apart(*pair) or _figures_beside(*pair) for pair in pairs)
    return wrong, right


def _figures_beside(text: str, other: str) -> list[str]:
    """Return the numbers and dates of a text that another does not have; those in words only if there are no others."""
    shared, spelled = agreeing(text, [other]), {number.text for number in facts_of(text).numbers if number.spelled}
    beside = [figure for figure in _figures(text) if figure not in shared]
    return [figure for figure in beside if figure not in spelled] or beside


def _figures(text: str) -> list[str]:
    own = facts_of(text)
    return [*(number.text for number in own.numbers), *(found.text for found in own.dates)]


def _has(text: str, figures: Sequence[str]) -> bool:
    """Whether a text has all of some figures; it may have a sign in words: "fell by 3" for -3."""
    return all(agreeing(figure, [text]) or agreeing(figure.lstrip("-"), [text]) for figure in figures)


def _says_the_same(claim: str, passage: SourcePassage) -> bool:
    """Whether the best sentence of a passage has most of a claim's words, little else, and none of its figures as the
    one before: "300 EUR instead of 150 EUR".
    """
    wanted, held = set(query_terms(claim)), set(query_terms(passage.best.text))
    shared = wanted & held
    before = " ".join(found["figure"] for found in _BEFORE.finditer(passage.best.text))
    gone = bool(before and agreeing(claim, [before]))
    return not gone and len(shared) >= max(LEAST_TERMS, HELD * len(wanted), SAME * len(held))


def _two_independent(passages: Iterable[SourcePassage], editions: Editions) -> bool:
    return any(_independent(*pair, editions) for pair in combinations(passages, 2))


def _independent(a: SourcePassage, b: SourcePassage, editions: Editions) -> bool:
    """Whether two passages come from unrelated sources and most sentences around them differ.

    A source is related to its later editions, and to what it amends, supplements or replaces.
    """
    ids = a.text.source.source_id, b.text.source.source_id
    if party(a.text.source).related(party(b.text.source)) or editions.is_later(*ids) or editions.is_later(*ids[::-1]):
        return False
    small, large = sorted((_around(a), _around(b)), key=len)
    same = sum(any(is_near_duplicate(sentence, other) for other in large) for sentence in small)
    return not small or same < COPIED * len(small)


def _around(passage: SourcePassage) -> list[str]:
    text = passage.text.text[max(0, passage.start - AROUND) : passage.end + AROUND]
    return [sentence.clean for sentence in split_sentences(text) if len(sentence.text) >= LEAST_CHARS]
