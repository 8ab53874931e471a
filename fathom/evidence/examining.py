"""A whole report against everything that was read: its sentences become claims with quotes, verdict and corroboration.

The pipeline and `fathom verify` call the same function, so a check is repeated by doing it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fathom.evidence.checking import Check, check
from fathom.evidence.claims import Statement, claims_of
from fathom.evidence.corroboration import corroborate
from fathom.evidence.locating import StoredText
from fathom.evidence.searching import Search, Window
from fathom.models import Report
from fathom.models.claims import Claim, Quote, Verdict

UNCITED = Check(Verdict.unsupported, 0.0, [], ["no source is cited"])


def examine(report: Report, texts: Sequence[StoredText], credibility: Mapping[str, float]) -> list[Claim]:
    """Return the claims of a report, numbered from 1 in reading order.

    Args:
        report: its sections, which cite sources by id.
        texts: all that was read, with its place in the artifacts.
        credibility: of sources, from 0 to 1; see `corroborate`.
    """
    statements = claims_of(report.sections)
    search = Search(texts, [statement.sentence for statement in statements])
    return [_claim(number, statement, search, credibility) for number, statement in enumerate(statements, 1)]


def _claim(number: int, statement: Statement, search: Search, credibility: Mapping[str, float]) -> Claim:
    sentence, source_ids = statement.sentence, statement.source_ids
    checked = check(sentence, search, source_ids) if source_ids else UNCITED
    place = corroborate(sentence, search, credibility)
    return Claim(
        number=number,
        section=statement.section,
        sentence=sentence,
        source_ids=list(source_ids),
        verdict=checked.verdict,
        score=checked.score,
        quotes=_quotes(checked.passages),
        complaints=checked.complaints,
        corroboration=place.corroboration,
        corroborating=_quotes(place.corroborating),
        contradicting=_quotes(place.contradicting),
    )


def _quotes(windows: Sequence[Window]) -> list[Quote]:
    return [window.text.quote(window.start, window.end) for window in windows]
