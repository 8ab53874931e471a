"""Warnings for a reader of a report, in words that the reader can act on (Research engine, 9.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date

from fathom.facts.extraction import plain
from fathom.models import Source
from fathom.models.evidence import Claim, Corroboration, SourceFlag, SourceQuality, SourceType, Verdict
from fathom.sources.corroboration import site
from fathom.sources.scoring import CREDIBLE, parse_date
from fathom.text.wording import Wording

MAX_WARNINGS = 3
MOST_NAMED = 2  # beside the first
TITLE_CHARS, SENTENCE_CHARS = 70, 120
FEW = 3  # claims from which resting on one site or source is worth a warning
MOST_ALONE = 0.5  # share of the claims that rest on a single source, above which a reader is told
_REASONS: Mapping[SourceFlag, str] = {
    "gives_orders": "gives orders to language models: somebody wants what is written from it to say something else.",
    "possibly_machine_made": "may have been written by a machine.",
    "potential_bias": "may be biased: somebody pays for it, or it is about what its own makers sell.",
    "paywalled": "is behind a paywall: only a part of it was read.",
}
_KINDS: Mapping[SourceType, str] = {
    "forum": "a forum",
    "blog": "a blog",
    "social": "a social network",
    "company": "a company's site",
}


def report_warnings(
    claims: Sequence[Claim],
    qualities: Sequence[SourceQuality],
    sources: Sequence[Source],
    today: date,
    words: Wording,
    *,
    marked: int = 0,
    renewed: Collection[str] = (),
) -> list[str]:
    """Return at most three sentences about the sources of a report's claims, the most serious first.

    One more comes before them if some claims are `marked` in the text because they lack a second source. Of `renewed`
    sources, by their ids, claims were compared with a later edition: nobody need look for one.
    """
    scored = {quality.source_id: quality for quality in qualities}
    uses = Counter(source_id for claim in claims for source_id in dict.fromkeys(claim.source_ids))
    named = {source.source_id: source for source in sources}
    used = sorted((s for s in named.values() if uses[s.source_id]), key=lambda source: -uses[source.source_id])
    found = [
        *_objections(claims, named, words),
        *_disputed(claims, named, words),
        *_doubtful(used, scored, uses, words),
        *_outdated([source for source in used if source.source_id not in renewed], scored, today, words),
        *_flagged(used, scored, words),
        *_alone(claims, used, words, tell=not marked),
    ]
    lacking = words(
        "For {claims}, marked in the text, no two independent sources that count as credible were found.",
        claims=words.counted(marked, "claim"),
    )
    return [lacking] * bool(marked) + found[:MAX_WARNINGS]


def _objections(claims: Sequence[Claim], sources: Mapping[str, Source], words: Wording) -> Iterator[str]:
    """Yield warnings about claims that the cited sources do not state, or contradict."""
    for verdict, cites, one in (
        (Verdict.contradicted, True, "This sentence cites a source that says otherwise"),
        (Verdict.contradicted, False, "This sentence cites no source, and one that was read says otherwise"),
        (Verdict.not_stated, True, "This sentence was not found in the sources that it cites"),
        (Verdict.not_stated, False, "This sentence cites no source, and none was found for it"),
    ):
        if those := [c for c in claims if c.verdict is verdict and cites is bool(c.source_ids)]:
            quote = those[0].quotes[0] if those[0].quotes and verdict is Verdict.contradicted else None
            head = words(one)
            if quote and quote.source_id in sources:
                head = words("{head} ({note})", head=head, note=_named(sources[quote.source_id], words))
            marked = "{sentences} are marked so in the text." if those[2:] else "{sentences} is marked so in the text."
            more = words(marked, sentences=words.counted(len(those) - 1, "more sentence")) if those[1:] else ""
            yield _together(words, words("{head}: {text}", head=head, text=_sentence(those[0], words)), more)


def _disputed(claims: Sequence[Claim], sources: Mapping[str, Source], words: Wording) -> Iterator[str]:
    those = [c for c in claims if c.corroboration is Corroboration.contradicted and not c.verdict.objects]
    if those and those[0].contradicting:
        against = sources.get(those[0].contradicting[0].source_id)
        first, *others = dict.fromkeys(_sentence(claim, words) for claim in those)
        yield _together(
            words,
            words(
                "{sentence} is contradicted by another source, {source}.", sentence=first, source=_named(against, words)
            )
            if against
            else words("{sentence} is contradicted by another source that was read.", sentence=first),
            words("Sources also disagree about {others}.", others=_more(others, "more sentence", words))
            if others
            else "",
        )


def _doubtful(
    used: Sequence[Source], scored: Mapping[str, SourceQuality], uses: Mapping[str, int], words: Wording
) -> Iterator[str]:
    low = [s for s in used if s.source_id in scored and scored[s.source_id].credibility < CREDIBLE]
    if _is_all(low, used):
        yield words("No source that is cited counts as credible: look for better ones before you rely on what matters.")
    elif low:
        quality = scored[low[0].source_id]
        kind = _KINDS.get(quality.type, "an unknown site")
        first, *others = (_named(source, words) for source in low)
        number = uses[low[0].source_id]
        cites = "{claims} cites {source}, {kind}" if number == 1 else "{claims} cite {source}, {kind}"
        dated = "." if quality.published or low[0].published else " without a date."
        yield _together(
            words,
            words(cites + dated, claims=words.counted(number, "claim"), source=first, kind=words(kind)),
            words("Check also what rests on {others}.", others=_more(others, "more source", words)) if others else "",
        )


def _outdated(
    used: Sequence[Source], scored: Mapping[str, SourceQuality], today: date, words: Wording
) -> Iterator[str]:
    old = [s for s in used if s.source_id in scored and "outdated" in scored[s.source_id].flags]
    if _is_all(old, used):
        yield words("All sources that are cited may be outdated: look for newer ones.")
    elif old:
        published = parse_date(scored[old[0].source_id].published or old[0].published, today)
        first, *others = (_named(source, words) for source in old)
        dated = "{source} is from {year} and may be outdated: look for a newer one."
        undated = "{source} is over two years old and may be outdated: look for a newer one."
        yield _together(
            words,
            words(dated, source=first, year=published.year) if published else words(undated, source=first),
            words("So may be {others}.", others=_more(others, "more source", words)) if others else "",
        )


def _flagged(used: Sequence[Source], scored: Mapping[str, SourceQuality], words: Wording) -> Iterator[str]:
    for flag, reason in _REASONS.items():
        if those := [s for s in used if s.source_id in scored and flag in scored[s.source_id].flags]:
            every = _is_all(those, used)
            first, *others = (_named(source, words) for source in those)
            yield _together(
                words,
                words("{source} " + reason, source=words("Each source that is cited") if every else first),
                words("So it is with {others}.", others=_more(others, "more source", words))
                if others and not every
                else "",
            )


def _alone(claims: Sequence[Claim], used: Sequence[Source], words: Wording, *, tell: bool) -> Iterator[str]:
    """Yield a warning about claims with too few sources; nobody is expected to repeat the user's own documents.

    Without `tell`, only that all are from one site.
    """
    if len(claims) < FEW or any(source.kind == "document" for source in used):
        return
    sites = {site(source) for source in used}
    citing = [claim for claim in claims if claim.source_ids]
    alone = [claim for claim in citing if claim.corroboration is Corroboration.single_source]
    if len(sites) == 1:
        yield words("All claims come from one site, {site}.", site=sites.pop())
    elif tell and len(alone) > MOST_ALONE * len(citing):
        yield words(
            "For {number} of {total} claims, no two independent sources that count as credible were found.",
            number=len(alone),
            total=len(citing),
        )


def _is_all(those: Sequence[Source], used: Sequence[Source]) -> bool:
    """Whether some sources are all that are cited, and several, so that naming them tells none from the others."""
    return 1 < len(those) == len(used)


def _together(words: Wording, *sentences: str) -> str:
    return words.space.join(filter(None, sentences))


def _more(every: Sequence[str], noun: str, words: Wording) -> str:
    """Return the first of some names or sentences, and the number of the others: a bare number would not help."""
    left = len(every) - MOST_NAMED
    return words.joined([*every[:MOST_NAMED], *([words.counted(left, noun)] if left > 0 else [])])


def _named(source: Source, words: Wording) -> str:
    return words("“{name}”", name=_shortened(source.title, TITLE_CHARS) if source.title else source.url)


def _sentence(claim: Claim, words: Wording) -> str:
    return words("“{name}”", name=_shortened(plain(claim.sentence), SENTENCE_CHARS))


def _shortened(text: str, most: int) -> str:
    """Return a text on one line, cut to as many whole words as fit; a text without spaces is cut anywhere."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rsplit(' ', 1)[0]}…"
