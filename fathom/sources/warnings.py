"""What a reader should know before trusting a report, the most serious first (001, section 9.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from fathom.models import Source
from fathom.models.claims import Claim, Corroboration, SourceFlag, SourceQuality, Verdict
from fathom.sources.corroboration import site
from fathom.sources.published import parse_date
from fathom.sources.scoring import CREDIBLE

MAX_WARNINGS = 8
EACH = 2  # sources named for one reason
NAMED = 6  # claims named by number
TITLE_CHARS = 70
FEW = 3  # claims from which resting on one site is worth a warning
_REASONS: dict[SourceFlag, str] = {
    "possibly_machine_made": "may have been written by a machine",
    "paywalled": "is behind a paywall: only a part of it was read",
}


def report_warnings(
    claims: Sequence[Claim], qualities: Sequence[SourceQuality], sources: Sequence[Source], today: date
) -> list[str]:
    """Return at most eight sentences in plain text about what the claims of a report rest on."""
    scored = {quality.source_id: quality for quality in qualities}
    uses = Counter(source_id for claim in claims for source_id in dict.fromkeys(claim.source_ids))
    used = {source.source_id: source for source in sources if uses[source.source_id]}
    ranked = sorted(used.values(), key=lambda source: -uses[source.source_id])
    found = [
        *_on_claims(claims, used),
        *_on_sources(ranked, scored, uses, today),
    ]
    sites = {site(source) for source in used.values()}
    if len(claims) >= FEW and len(sites) == 1 and all(source.kind == "web" for source in used.values()):
        found.append(f"All claims come from one site, {sites.pop()}.")
    return found[:MAX_WARNINGS]


def _on_claims(claims: Sequence[Claim], used: Mapping[str, Source]) -> Iterator[str]:
    contradicted = [claim for claim in claims if claim.corroboration is Corroboration.contradicted]
    unsupported = [claim for claim in claims if claim.verdict is Verdict.unsupported]
    weak = [claim for claim in claims if claim.verdict is Verdict.weak]
    # Other sources are not expected to repeat the user's own documents.
    repeatable = any(source.kind != "document" for source in used.values())
    single = [c for c in claims if repeatable and c.corroboration is Corroboration.single_source]
    alone = [claim for claim in single if claim not in unsupported]
    for those, one, many, what in (
        (contradicted, "is", "are", "contradicted by another source"),
        (unsupported, "is", "are", "not supported by the sources cited"),
        (weak, "has", "have", "only weak support in the sources cited"),
        (alone, "rests", "rest", "on a single source and could not be verified independently"),
    ):
        if those:
            yield f"{_count(len(those), 'claim')} {one if len(those) == 1 else many} {what} ({_numbers(those)})."


def _on_sources(
    used: Iterable[Source], qualities: Mapping[str, SourceQuality], uses: Mapping[str, int], today: date
) -> Iterator[str]:
    scored = [
        (source, qualities[source.source_id], _count(uses[source.source_id], "claim"))
        for source in used
        if source.source_id in qualities
    ]
    low = [found for found in scored if found[1].credibility < CREDIBLE]
    for source, quality, claims in low[:EACH]:
        yield f"{_named(source)}, used for {claims}, has a credibility of {quality.credibility:.2f}."
    if more := len(low[EACH:]):
        yield f"{_count(more, 'more source')} {'has' if more == 1 else 'have'} a credibility below {CREDIBLE}."
    old = [found for found in scored if "outdated" in found[1].flags]
    for source, quality, claims in old[:EACH]:
        published = parse_date(quality.published or source.published, today)
        when = f"from {published.year}" if published else "over two years old"
        yield f"What {_named(source)} says ({claims}) is {when} and may be outdated."
    if more := len(old[EACH:]):
        yield f"{_count(more, 'more source')} may be outdated."
    for flag, reason in _REASONS.items():
        if those := [(source, claims) for source, quality, claims in scored if flag in quality.flags]:
            others = f" (and {_count(len(those) - 1, 'more source')})" if len(those) > 1 else ""
            yield f"{_named(those[0][0])}, used for {those[0][1]}, {reason}{others}."


def _named(source: Source) -> str:
    title = source.title if len(source.title) <= TITLE_CHARS else source.title[:TITLE_CHARS].rsplit(" ", 1)[0] + "…"
    return f"“{title}”"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("s" if number != 1 else "")


def _numbers(claims: Sequence[Claim]) -> str:
    shown = ", ".join(str(claim.number) for claim in claims[:NAMED])
    return shown + (", …" if len(claims) > NAMED else "")
