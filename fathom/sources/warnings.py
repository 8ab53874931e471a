"""Warnings for a reader of a report, in words that the reader can act on (Research engine, 9.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from fathom.facts.extraction import plain
from fathom.models import Source
from fathom.models.evidence import Claim, Corroboration, SourceFlag, SourceQuality, SourceType, Verdict
from fathom.sources.corroboration import site
from fathom.sources.scoring import CREDIBLE, parse_date
from fathom.text.plain import counted, joined

MAX_WARNINGS = 3
MOST_NAMED = 2  # beside the first
TITLE_CHARS, SENTENCE_CHARS = 70, 120
FEW = 3  # claims from which resting on one site or source is worth a warning
_LACKING = "no two independent sources that count as credible were found."
MOST_ALONE = 0.5  # share of the claims that rest on a single source, above which a reader is told
_REASONS: Mapping[SourceFlag, str] = {
    "gives_orders": "gives orders to language models: somebody wants what is written from it to say something else",
    "possibly_machine_made": "may have been written by a machine",
    "potential_bias": "may be biased: somebody pays for it, or it is about what its own makers sell",
    "paywalled": "is behind a paywall: only a part of it was read",
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
    *,
    marked: int = 0,
) -> list[str]:
    """Return at most three sentences about the sources of a report's claims, the most serious first.

    One more comes before them if some claims are `marked` in the text because they lack a second source.
    """
    scored = {quality.source_id: quality for quality in qualities}
    uses = Counter(source_id for claim in claims for source_id in dict.fromkeys(claim.source_ids))
    named = {source.source_id: source for source in sources}
    used = sorted((s for s in named.values() if uses[s.source_id]), key=lambda source: -uses[source.source_id])
    found = [
        *_objections(claims, named),
        *_disputed(claims, named),
        *_doubtful(used, scored, uses),
        *_outdated(used, scored, today),
        *_flagged(used, scored),
        *_alone(claims, used, tell=not marked),
    ]
    lacking = f"For {counted(marked, 'claim')}, marked in the text, {_LACKING}"
    return [lacking] * bool(marked) + found[:MAX_WARNINGS]


def _objections(claims: Sequence[Claim], sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield warnings about claims that the cited sources do not state, or contradict."""
    for verdict, one in (
        (Verdict.contradicted, "This sentence cites a source that says otherwise"),
        (Verdict.not_stated, "This sentence was not found in the sources that it cites"),
    ):
        if those := [claim for claim in claims if claim.verdict is verdict]:
            quote = those[0].quotes[0] if those[0].quotes and verdict is Verdict.contradicted else None
            said = f" ({_named(sources[quote.source_id])})" if quote and quote.source_id in sources else ""
            more = f" {counted(len(those) - 1, 'more sentence')} {'are' if those[2:] else 'is'} marked so in the text."
            yield f"{one}{said}: {_sentence(those[0])}{more if those[1:] else ''}"


def _disputed(claims: Sequence[Claim], sources: Mapping[str, Source]) -> Iterator[str]:
    those = [c for c in claims if c.corroboration is Corroboration.contradicted and not c.verdict.objects]
    if those and those[0].contradicting:
        against = sources.get(those[0].contradicting[0].source_id)
        who = f"another source, {_named(against)}" if against else "another source that was read"
        more = f" Sources also disagree about {_more(map(_sentence, those[1:]), 'sentence')}." if those[1:] else ""
        yield f"{_sentence(those[0])} is contradicted by {who}.{more}"


def _doubtful(used: Sequence[Source], scored: Mapping[str, SourceQuality], uses: Mapping[str, int]) -> Iterator[str]:
    low = [s for s in used if s.source_id in scored and scored[s.source_id].credibility < CREDIBLE]
    if _is_all(low, used):
        yield "No source that is cited counts as credible: look for better ones before you rely on what matters."
    elif low:
        quality = scored[low[0].source_id]
        kind = _KINDS.get(quality.type, "an unknown site")
        dated = "" if quality.published or low[0].published else " without a date"
        others = f" Check also what rests on {_more(map(_named, low[1:]), 'source')}." if low[1:] else ""
        number = uses[low[0].source_id]
        cite = f"{counted(number, 'claim')} {'cites' if number == 1 else 'cite'}"
        yield f"{cite} {_named(low[0])}, {kind}{dated}.{others}"


def _outdated(used: Sequence[Source], scored: Mapping[str, SourceQuality], today: date) -> Iterator[str]:
    old = [s for s in used if s.source_id in scored and "outdated" in scored[s.source_id].flags]
    if _is_all(old, used):
        yield "All sources that are cited may be outdated: look for newer ones."
    elif old:
        published = parse_date(scored[old[0].source_id].published or old[0].published, today)
        when = f"is from {published.year}" if published else "is over two years old"
        others = f" So may be {_more(map(_named, old[1:]), 'source')}." if old[1:] else ""
        yield f"{_named(old[0])} {when} and may be outdated: look for a newer one.{others}"


def _flagged(used: Sequence[Source], scored: Mapping[str, SourceQuality]) -> Iterator[str]:
    for flag, reason in _REASONS.items():
        if those := [s for s in used if s.source_id in scored and flag in scored[s.source_id].flags]:
            every = _is_all(those, used)
            others = f" So it is with {_more(map(_named, those[1:]), 'source')}." if those[1:] and not every else ""
            yield f"{'Each source that is cited' if every else _named(those[0])} {reason}.{others}"


def _alone(claims: Sequence[Claim], used: Sequence[Source], *, tell: bool) -> Iterator[str]:
    """Yield a warning about claims with too few sources; nobody is expected to repeat the user's own documents.

    Without `tell`, only that all are from one site.
    """
    if len(claims) < FEW or any(source.kind == "document" for source in used):
        return
    sites = {site(source) for source in used}
    citing = [claim for claim in claims if claim.source_ids]
    alone = [claim for claim in citing if claim.corroboration is Corroboration.single_source]
    if len(sites) == 1:
        yield f"All claims come from one site, {sites.pop()}."
    elif tell and len(alone) > MOST_ALONE * len(citing):
        yield f"For {len(alone)} of {len(citing)} claims, {_LACKING}"


def _is_all(those: Sequence[Source], used: Sequence[Source]) -> bool:
    """Whether some sources are all that are cited, and several, so that naming them tells none from the others."""
    return 1 < len(those) == len(used)


def _more(named: Iterable[str], noun: str) -> str:
    """Return the first of some names or sentences, and the number of the others: a bare number would not help."""
    every = list(named)
    left = len(every) - MOST_NAMED
    return joined([*every[:MOST_NAMED], *([counted(left, f"more {noun}")] if left > 0 else [])], "and")


def _named(source: Source) -> str:
    return f"“{_shortened(source.title, TITLE_CHARS) if source.title else source.url}”"


def _sentence(claim: Claim) -> str:
    return f"“{_shortened(plain(claim.sentence), SENTENCE_CHARS)}”"


def _shortened(text: str, most: int) -> str:
    """Return a text on one line, cut to as many whole words as fit; a text without spaces is cut anywhere."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rsplit(' ', 1)[0]}…"
