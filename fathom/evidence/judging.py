"""Requests to a judge about the claims of a report, and the verdicts that follow from its answers.

Claims that words alone do not settle are put into requests of up to `AT_ONCE`, claims on the same sources together, so
that no passage is sent twice in a request; a request that exceeds the model's window is halved. `not_stated` mostly
means that the deciding sentence was not shown: such a claim is judged again, with what a wider search for the judge's
own words finds. Only the second answer counts, unless the judge saw the sources whole. Requests and answers are stored
beside the report, and `settled` follows from them alone.

The question is shown for the values of the asker's own case, such as "40 pallets on 7 December". They never support a
claim alone: passages must, and the judge names what it takes from the question. If a passage of the claim's sources has
another value of the same kind, such as 48 EUR a month for 40, the claim is judged again with that passage. So is one
that is supported with a figure or a quotation that no passage of its sources has, and that does not follow from them.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Container, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from textwrap import shorten
from typing import NamedTuple

from fathom.evidence.bearing import Bearing, BearingSpan, SoughtClaim, share_of
from fathom.evidence.claims import ClaimSentence
from fathom.evidence.doubts import misplaced, unfounded
from fathom.evidence.passages import Search
from fathom.evidence.support import spaced_words
from fathom.evidence.words import said_in, says_nothing
from fathom.facts.extraction import blanked, facts_of, figures_apart, figures_of
from fathom.models import Judgement, Model, Verdict
from fathom.roles.judge import (
    MOST_PASSAGES,
    JudgeAnswer,
    JudgedClaim,
    JudgeRequest,
    Opinion,
    ShownPassage,
    ShownSource,
)
from fathom.text.sentences import split_sentences
from fathom.text.terms import query_terms

JUDGEMENTS = "judgements.json"
AT_ONCE = 40  # claims of one request
HEADINGS, HEADING_CHARS = 2, 80  # above a passage, the lowest ones
# Characters of passages in a request, and more for each claim of usual length: passages of one bear on others too.
# docs/evidence.md has what more or less of them would buy.
ROOM, ROOM_A_CLAIM, ROOM_A_CLAIM_AGAIN, ROOM_OF_NEWER = 1_000, 450, 800, 450
SHARED_TERMS = 2  # least words of a sentence that a claim has which says a part of it
_KINDS = {"table": "row", "code": "code"}

Key = tuple[str, tuple[str, ...]]
"""The key of a claim: its sentence, and the ids of the sources that have to say it."""

Fits = Callable[[JudgeRequest], bool]
"""Whether a request and its answer fit into the window of the judge's model."""

Ask = Callable[[JudgeRequest], Awaitable[tuple[JudgeAnswer, str]]]
"""Puts one request to the judge; returns its answer and the name of the model that gave it."""


class Exchange(Model):
    """A request to the judge, and its answer; `model` gave it."""

    request: JudgeRequest
    answer: JudgeAnswer
    model: str


class Known(NamedTuple):
    """The missing part of a claim, and passages to show that the judge named for a part of it or for other claims.

    `doubted` has the values that the judge took from the question, for which the passages have others, `unfounded` what
    no passage has, and `later` the passages of newer sources that may replace what the claim tells.
    """

    look_for: str
    passages: Sequence[ShownPassage]
    doubted: Sequence[str] = ()
    unfounded: Sequence[str] = ()
    later: Sequence[BearingSpan] = ()


class Settled(NamedTuple):
    """The judge's verdict on a claim; the passages that decided, each with its source's id; the missing part."""

    judgement: Judgement
    shown: list[tuple[str, ShownPassage]]
    look_for: str = ""  # the words that the missing part would have in a source
    replaced: tuple[str, ShownPassage] | None = None  # a later source, and its passage by which it no longer holds


def key_of(statement: ClaimSentence) -> Key:
    """Return the key of a claim."""
    return statement.sentence, statement.checked_against


def unsettled(
    statements: Iterable[ClaimSentence], search: Search, replaceable: Container[Key] = ()
) -> list[ClaimSentence]:
    """Return the claims to be judged, each once: their sources do not say them word for word, or later ones may replace
    what they say. A claim that cites nothing is judged by everything that was read.
    """
    claims = {key_of(statement): statement for statement in statements}
    return [
        one
        for one in claims.values()
        if key_of(one) in replaceable or (not said_in(one, search) and (one.checked_against or search.texts))
    ]


def requests_for(
    statements: Sequence[ClaimSentence],
    bearing: Bearing,
    known: Mapping[Key, Known] | None = None,
    fits: Fits = lambda _request: True,
    *,
    question: str = "",
    today: str = "",
    again: bool = False,
) -> list[JudgeRequest]:
    """Return the requests about some claims that have sources.

    `known` holds the judge's earlier findings on some of them; `again`: it is asked about the parts that it did not
    find then. `question` is what the report answers, and `today` the ISO date on which it is written.
    A request about one claim is made even if it does not fit.
    """
    order = {
        source_id: n for n, source_id in enumerate(dict.fromkeys(i for s in statements for i in s.checked_against))
    }
    ordered = sorted(statements, key=lambda statement: [order[i] for i in statement.checked_against])
    groups = deque(ordered[n : n + AT_ONCE] for n in range(0, len(ordered), AT_ONCE))
    made: list[JudgeRequest] = []
    while groups:
        group = groups.popleft()
        request = _request(group, bearing, known or {}, again=again)
        request = request.model_copy(update={"question": question, "today": today})
        if len(group) == 1 or fits(request):
            made.append(request)
        else:
            half = len(group) // 2
            groups.extendleft((group[half:], group[:half]))
    return made


def to_judge_again(asked: Iterable[Exchange]) -> dict[Key, Known]:
    """Return the claims that the judge did not find in the shown passages, with the missing and the found parts.

    So are those for which it took a value from the question, while a passage of their sources has another, and those
    that it supports with a figure or a quotation that no passage has.
    """
    found: dict[Key, Known] = {}
    for one in asked:
        shown = one.request.passages
        for claim, opinion in _opinions(one):
            if doubted := _doubted(one.request, claim, opinion):
                against = [passage for passages in doubted.values() for passage in passages]
                found[claim.key] = Known("", against, list(doubted))
            elif nowhere := _unfounded(one.request, claim, opinion):
                named = [shown[number][1] for number in opinion.passages]
                found[claim.key] = Known("", named or _own(one.request, claim)[:MOST_PASSAGES], unfounded=nowhere)
            elif opinion.verdict is Verdict.not_stated and not _saw_all(one.request, claim):
                found[claim.key] = Known(opinion.look_for, [shown[number][1] for number in opinion.passages])
    return found


def settled(asked: Iterable[Exchange]) -> dict[Key, Settled]:
    """Return the verdicts that follow from the judge's answers, by claim."""
    found: dict[Key, Settled] = {}
    for one in asked:
        shown = one.request.passages
        for claim, opinion in _opinions(one):
            verdict: Verdict = opinion.verdict
            if verdict is Verdict.not_stated and not one.request.again and not _saw_all(one.request, claim):
                verdict = Verdict.not_checked  # until it is judged again
            doubted = not one.request.again and (
                _doubted(one.request, claim, opinion) or _unfounded(one.request, claim, opinion)
            )
            if verdict is Verdict.not_stated and not claim.source_ids and says_nothing(claim.sentence):
                verdict = Verdict.not_checked  # "No source says what it costs": that none says so is no objection
            groundless = not claim.source_ids and not opinion.passages  # it cites nothing, and nothing was named for it
            if verdict is Verdict.supported and (doubted or groundless or not _may_take(opinion, one.request.question)):
                verdict = Verdict.not_checked
            judgement = Judgement(
                verdict=verdict,
                model=one.model,
                reason=opinion.reason,
                searches=1 + one.request.again,
                given=opinion.given if not verdict.objects else [],
            )
            decided = [(source.source_id, passage) for source, passage in map(shown.__getitem__, opinion.passages)]
            by = shown.get(opinion.replaced_by)
            replaced = (by[0].source_id, by[1]) if by else None
            if claim.key in found and not claim.later:  # the second look is for what was not found at the first
                replaced = replaced or found[claim.key].replaced
            found[claim.key] = Settled(judgement, decided, opinion.look_for, replaced)
    return found


def supporting(sentence: str, source_ids: Collection[str], asked: Iterable[Exchange]) -> list[ShownPassage]:
    """Return passages of some sources by which the judge supported other claims that say parts of a sentence.

    Without sources, they are of any.

    A sentence that sums up others rests on their passages. Together they have about `ROOM_A_CLAIM_AGAIN` characters,
    and more for a sentence with more facts.
    """
    said: list[tuple[set[str], list[ShownPassage]]] = []
    for one in asked:
        shown = one.request.passages
        for claim, opinion in _opinions(one):
            named = (shown[number] for number in opinion.passages)
            passages = [passage for source, passage in named if _may_rest_on(source, source_ids)]
            if opinion.verdict is Verdict.supported and passages:
                said.append((set(query_terms(claim.sentence)), passages))
    left, room, found = set(query_terms(sentence)), ROOM_A_CLAIM_AGAIN * share_of(sentence), list[ShownPassage]()
    while said:
        terms, passages = best = max(said, key=lambda pair: len(pair[0] & left))
        if len(terms & left) < SHARED_TERMS:
            break
        said.remove(best)
        left -= terms
        for passage in passages:
            if room > 0:
                found.append(passage)
                room -= len(passage.text)
    return found


def bearing_on(
    statement: ClaimSentence,
    source_ids: Iterable[str],
    bearing: Bearing,
    look_for: str = "",
    *,
    least: float = 0.0,
    room: int = ROOM_A_CLAIM_AGAIN,
) -> list[BearingSpan]:
    """Return the passages of some sources that bear most on a claim, or on its missing part.

    `least`: share of what is sought, 0 to 1, that a passage must have. `room`: their characters, for a usual claim.
    """
    ids = list(dict.fromkeys(source_ids))
    wanted = SoughtClaim(statement.sentence, "", ids, cited=(), look_for=look_for, least=least)
    return bearing.chosen([wanted], round(room * share_of(statement.sentence)))


def without_figures(statement: ClaimSentence) -> ClaimSentence:
    """Return a claim without its numbers: what replaces it has others."""
    facts = facts_of(statement.sentence)
    return statement._replace(sentence=blanked(facts.text, ((one.start, one.end) for one in facts.numbers)))


def shown_sources(spans: Iterable[BearingSpan], bearing: Bearing, also: Iterable[str] = ()) -> list[ShownSource]:
    """Return sources with their passages, numbered from 1, and the sources `also` named by their ids."""
    numbers = count(1)
    by_source: dict[str, list[BearingSpan]] = {}
    for span in spans:
        by_source.setdefault(span.text.source.source_id, []).append(span)
    return [
        ShownSource(
            source_id=source.source_id,
            title=source.title,
            address=source.url,
            published=source.published,
            fields=source.fields,
            whole=bearing.is_whole(source.source_id, own),
            passages=[_shown(span, next(numbers), bearing) for span in own],
        )
        for source in bearing.sources([*by_source, *also])
        for own in [by_source.get(source.source_id, [])]
    ]


def numbers_of(spans: Iterable[BearingSpan], sources: Sequence[ShownSource]) -> list[int]:
    """Return the numbers of the shown passages that have some passages, in their order."""
    said = {
        passage.number: (source.source_id, " ".join(passage.text.split()))
        for source in sources
        for passage in source.passages
    }
    wanted = ((span.text.source.source_id, " ".join(span.text.text[span.start : span.end].split())) for span in spans)
    found = (
        next(number for number, (shown_of, text) in said.items() if shown_of == source_id and words in text)
        for source_id, words in wanted
    )
    return list(dict.fromkeys(found))


def _may_take(opinion: Opinion, question: str) -> bool:
    """Whether a claim may rest on what the judge takes from the question: passages, and numbers and dates of it."""
    words = set(spaced_words(question).split())
    values = (facts_of(text) for text in opinion.given)
    return not opinion.given or (
        bool(opinion.passages)
        and all(set(spaced_words(text).split()) <= words for text in opinion.given)
        and all(value.numbers or value.dates for value in values)
    )


def _doubted(request: JudgeRequest, claim: JudgedClaim, opinion: Opinion) -> dict[str, list[ShownPassage]]:
    """Return the values that a supported claim takes from the question while passages of its sources have others.

    Each has these passages. Another value has the same unit, or counts the same, in a sentence with words of the claim.
    """
    if opinion.verdict is not Verdict.supported or not opinion.given:
        return {}
    about, asked = set(query_terms(claim.sentence)), facts_of(request.question)
    figures = [asked.text[figure.start : figure.end] for figure in figures_of(asked)]
    own = _own(request, claim)
    found: dict[str, list[ShownPassage]] = {}
    for value in opinion.given:
        whole = next((figure for figure in figures if spaced_words(value) in spaced_words(figure)), value)
        found[value] = [
            passage
            for passage in own
            if any(
                figures_apart(whole, said.text) and len(about.intersection(query_terms(said.text))) >= SHARED_TERMS
                for said in split_sentences(passage.text)
            )
        ]
    return {value: passages for value, passages in found.items() if passages}


def _own(request: JudgeRequest, claim: JudgedClaim) -> list[ShownPassage]:
    """Return the shown passages of a claim's sources; all of them for a claim that cites nothing."""
    return [passage for source, passage in request.passages.values() if _may_rest_on(source, claim.source_ids)]


def _may_rest_on(source: ShownSource, source_ids: Collection[str]) -> bool:
    """Whether a claim that cites some sources may rest on a source; one that cites nothing may rest on any."""
    return not source_ids or source.source_id in source_ids


def _unfounded(request: JudgeRequest, claim: JudgedClaim, opinion: Opinion) -> list[str]:
    """Return the figures and quotations of a supported claim that no passage of its sources has at its place."""
    if opinion.verdict is not Verdict.supported or claim.kind == "code":
        return []
    about = (
        " ".join([source.title, source.published, *source.fields.values()])
        for source in request.sources
        if _may_rest_on(source, claim.source_ids)
    )
    own = _own(request, claim)
    headings = (passage.headings for passage in own)
    texts = [passage.text for passage in own]
    nowhere = unfounded(claim.sentence, [*texts, *headings, *about, claim.context, *opinion.given])
    return list(dict.fromkeys([*nowhere, *misplaced(claim.sentence, texts)]))


def _opinions(asked: Exchange) -> Iterable[tuple[JudgedClaim, Opinion]]:
    by_number = {claim.number: claim for claim in asked.request.claims}
    return ((by_number[opinion.claim], opinion) for opinion in asked.answer.opinions if opinion.claim in by_number)


def _saw_all(request: JudgeRequest, claim: JudgedClaim) -> bool:
    """Whether the judge saw the sources of a claim whole; a cited source that does not exist has no text."""
    shown = {source.source_id: source.whole for source in request.sources}
    return bool(claim.source_ids) and all(shown.get(source_id, claim.cited) for source_id in claim.source_ids)


def _request(
    statements: Sequence[ClaimSentence], bearing: Bearing, known: Mapping[Key, Known], *, again: bool
) -> JudgeRequest:
    wanted = [_wanted(statement, bearing, known.get(key_of(statement))) for statement in statements]
    shares = math.fsum(share_of(statement.sentence) for statement in statements)
    room = ROOM + round((ROOM_A_CLAIM_AGAIN if again else ROOM_A_CLAIM) * shares)
    # A second request shows what is missing; the fields of a source's header still count if nothing of its text does.
    cited = [source_id for statement in statements for source_id in statement.source_ids] if again else []
    sources = shown_sources(bearing.chosen(wanted, room), bearing, cited)
    findings = [known.get(key_of(statement), Known("", ())) for statement in statements]
    return JudgeRequest(
        claims=[
            JudgedClaim(
                number=number,
                sentence=statement.sentence,
                context=_context(statement, found),
                kind=_KINDS.get(statement.kind, "sentence"),
                source_ids=list(statement.checked_against),
                cited=bool(statement.source_ids) and not statement.beside,
                doubted=list(found.doubted),
                unfounded=list(found.unfounded),
                later=numbers_of(found.later, sources),
            )
            for number, (statement, found) in enumerate(zip(statements, findings, strict=True), 1)
        ],
        sources=sources,
        again=again,
    )


def _context(statement: ClaimSentence, known: Known) -> str:
    """Return the context of a claim; where later sources may replace what it tells, with the sentence behind it."""
    behind = [said for said, _ in statement.neighbours if said not in statement.context]
    return "\n".join([statement.context, *(f"then: {said}" for said in behind if known.later)])


def _wanted(statement: ClaimSentence, bearing: Bearing, known: Known | None) -> SoughtClaim:
    """Return what to search for: the missing part of a claim that was not found, besides the found part."""
    of_text = (bearing.span(passage) for passage in known.passages) if known else ()
    return SoughtClaim(
        sentence=statement.sentence,
        context=statement.context,
        source_ids=statement.checked_against or bearing.source_ids,
        cited=statement.source_ids,
        look_for=known.look_for if known else "",
        kept=[*(span for span in of_text if span), *(known.later if known else ())],
    )


def _shown(span: BearingSpan, number: int, bearing: Bearing) -> ShownPassage:
    quote = span.text.quote(span.start, span.end)
    return ShownPassage(
        number=number,
        headings=" › ".join(
            shorten(one, HEADING_CHARS, placeholder=" …")
            for one in bearing.headings(span)[-HEADINGS:]
            if one != span.text.source.title
        ),
        **quote.model_dump(include={"text", "artifact_file", "start", "end", "sha256"}),
    )


async def judge(
    statements: Sequence[ClaimSentence],
    bearing: Bearing,
    ask: Ask,
    known: Mapping[Key, Known] | None = None,
    fits: Fits = lambda _request: True,
    *,
    question: str = "",
    today: str = "",
    again: bool = False,
) -> list[Exchange]:
    """Judge some claims that have sources, and judge the ones that were not found again.

    With `again`, all of them were judged before, and this is the last look.
    `known` holds passages to show for some claims, such as the passages by which a claim was corrected, or by which
    other claims that say a part of it were supported. `question` is what the report answers, and `today` the ISO date
    on which it is written.
    """
    requests = partial(requests_for, bearing=bearing, fits=fits, question=question, today=today)
    asked = await _asked(partial(requests, statements, known=known, again=again), ask)
    if again:
        return asked
    missed = to_judge_again(asked)
    left = [statement for statement in statements if key_of(statement) in missed]
    return [*asked, *await _asked(partial(requests, left, known=missed, again=True), ask)]


async def _asked(requests: Callable[[], list[JudgeRequest]], ask: Ask) -> list[Exchange]:
    made = await asyncio.to_thread(requests)
    answers = await asyncio.gather(*map(ask, made))
    return [Exchange(request=one, answer=answer, model=by) for one, (answer, by) in zip(made, answers, strict=True)]
