"""The check of another system's report: its claims against the texts of its sources, like the check of Fathom's own.

A claim whose source was not found is not objected to: it is `not_checked`. A section that cites nothing, a summary say,
is held against all sources, and objected to only where one of them says otherwise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import date

from fathom.evidence.claims import BESIDE, ClaimSentence, claims_of
from fathom.evidence.judging import Key, Settled, unsettled
from fathom.evidence.passages import Search
from fathom.evidence.stored import StoredText
from fathom.evidence.verify import Checking
from fathom.models import Claim, Model, Report, ReportSection, Source, Usage, Verdict
from fathom.report.foreign.reading import Cited, Foreign
from fathom.report.foreign.sources import Looked, NumberedSource
from fathom.report.html import render_html
from fathom.sources.scoring import rate_sources, score_sources
from fathom.text.citations import cited_ids
from fathom.text.plain import counted, joined

NO_TEXT, NOT_ALL = "none of its sources was found", "not all of its sources were found"
CITES_NOTHING = "its section cites nothing"
OWN_WORDS = (
    "Fathom wrote this report. What it says about its own work, such as how sure the answer is and how it was "
    "researched, is not a claim and was not checked."
)
NAMED = 3
_NOWHERE = re.compile(r"(</summary>|[>·] ?), (bytes [\d,]+ to [\d,]*\d)")  # of a quote without a file


class CheckedSource(Model):
    """A source of the report. `places`: the files or the address it was read from; `reason`: why it was not read."""

    number: int  # in the order of first use, from 1
    source_id: str
    url: str  # as the report spells it; for a source without an address, its entry in the list
    title: str
    places: list[str] = []
    reason: str = ""
    characters: int = 0  # that were read


class ForeignCheck(Model):
    """The check of another system's report; the places of quotes refer to the texts as they were read."""

    file: str
    title: str
    model: str  # the model that judged; empty: words alone
    claims: list[Claim]
    sources: list[CheckedSource]
    unused_files: list[str] = []  # files that are not a source of the report
    by_fathom: bool = False  # a run of Fathom wrote the report
    warnings: list[str] = []  # what a reader must know before relying on it
    usage: Usage = Usage()  # of the model

    @property
    def objections(self) -> int:
        """The number of claims that should not stand as they are."""
        return sum(claim.verdict.objects for claim in self.claims)

    @property
    def verdicts(self) -> Counter[Verdict]:
        """The number of claims by verdict."""
        return Counter(claim.verdict for claim in self.claims)


def wanted_of(foreign: Foreign) -> list[NumberedSource]:
    """Return the sources of a report with their numbers in its lists."""
    numbers: dict[str, list[str]] = {}
    for number, source_id in foreign.cited.numbers.items():
        numbers.setdefault(source_id, []).append(number)
    return [NumberedSource(source, tuple(numbers.get(source.source_id, ()))) for source in foreign.report.sources]


def to_judge(report: Report, texts: Sequence[StoredText]) -> list[ClaimSentence]:
    """Return the claims that words alone do not settle and that have a source that was found."""
    found = {text.source.source_id for text in texts}
    statements = _statements(report.sections, texts)
    return unsettled((one for one in statements if found & set(one.checked_against)), Search(texts))


def checked(
    name: str, foreign: Foreign, looked: Looked, judged: Mapping[Key, Settled], *, model: str, today: date
) -> tuple[ForeignCheck, Report]:
    """Check a report against the texts of its sources; return the check, and the report with verdicts for its page."""
    report, texts = _titled(foreign.report, looked.texts), looked.texts
    qualities = score_sources(rate_sources([text.source_text() for text in texts], [], query=report.title, today=today))
    statements = _statements(report.sections, texts)
    credibility = {one.source_id: one.credibility for one in qualities}
    every = [source.source_id for source in report.sources]
    bare = {n for n, section in enumerate(report.sections) if not cited_ids(section.markdown)}
    claims = [
        _fair(claim, one.checked_against or every, looked.places, bare=one.section in bare)
        for claim, one in zip(Checking(texts).claims(statements, credibility, judged), statements, strict=True)
    ]
    sources = [_source(number, one, looked) for number, one in enumerate(report.sources, 1)]
    found = ForeignCheck(
        file=name,
        title=report.title,
        model=model,
        claims=claims,
        sources=sources,
        unused_files=looked.unused,
        by_fathom=foreign.by_fathom,
        warnings=[*([OWN_WORDS] if foreign.by_fathom else []), *_warnings(foreign.cited, sources, claims)],
    )
    return found, report.model_copy(update={"claims": claims, "qualities": qualities})


def page_of(found: ForeignCheck, report: Report) -> str:
    """Return the page of a checked report, on which every claim leads to its evidence."""
    whose = f"Fathom did not write this report: it checked the claims of {found.file} by the sources that they cite."
    unread = [
        f"Not read: {' '.join(filter(None, [source.title, source.url and f'({source.url})']))}: {source.reason}"
        for source in found.sources
        if not source.places
    ]
    shown = {
        "warnings": [*([] if found.by_fathom else [whose]), *found.warnings],
        "limitations": unread,
        "claims": [_placeless(claim) for claim in found.claims],
    }
    page = render_html(report.model_copy(update=shown))
    return _NOWHERE.sub(lambda place: f"{place[1]}{place[2]} of the text as it was read", page)


def _titled(report: Report, texts: Sequence[StoredText]) -> Report:
    """Return a report whose sources have the titles and dates of their own texts, if they were found."""
    own: dict[str, Source] = {}
    for text in texts:
        own.setdefault(text.source.source_id, text.source)
    sources = []
    for source in report.sources:
        known = own.get(source.source_id)
        update = {
            name: getattr(known, name, None) or getattr(source, name) for name in ("title", "published", "reference")
        }
        sources.append(source.model_copy(update=update))
    return report.model_copy(update={"sources": sources})


def _statements(sections: Sequence[ReportSection], texts: Sequence[StoredText]) -> list[ClaimSentence]:
    """Return the claims of a report; if no claim of a section cites, they are checked against all found sources."""
    every = tuple(dict.fromkeys(text.source.source_id for text in texts))
    statements = claims_of(sections)
    citing = {one.section for one in statements if one.source_ids}
    own = [tuple(cited_ids(section.markdown)) or every for section in sections]
    return [one if one.section in citing else one._replace(beside=own[one.section][:BESIDE]) for one in statements]


def _fair(claim: Claim, against: Sequence[str], found: Collection[str], *, bare: bool) -> Claim:
    """Return a claim without objections that may be due only to a source that was not found or not cited."""
    if claim.verdict in (Verdict.supported, Verdict.contradicted):
        return claim
    missing = [source_id for source_id in against if source_id not in found]
    if bare:
        why = [CITES_NOTHING, *claim.complaints]
    elif missing:
        why = [NOT_ALL if len(missing) < len(against) else NO_TEXT]
    else:
        return claim
    return claim.model_copy(update={"verdict": Verdict.not_checked, "complaints": why})


def _source(number: int, source: Source, looked: Looked) -> CheckedSource:
    read = [text.text for text in looked.texts if text.source.source_id == source.source_id]
    places = looked.places.get(source.source_id, [])
    return CheckedSource(
        number=number,
        source_id=source.source_id,
        url=source.url,
        title=source.title,
        places=places,
        reason="" if places else looked.reasons.get(source.source_id, "not found"),
        characters=sum(map(len, read)),
    )


def _warnings(cited: Cited, sources: Sequence[CheckedSource], claims: Sequence[Claim]) -> list[str]:
    missing = [source for source in sources if not source.places]
    found = []
    if missing:
        named = [source.title or source.url for source in missing[:NAMED]]
        more = [f"{len(missing) - NAMED} more"] if len(missing) > NAMED else []
        found.append(
            f"{counted(len(missing), 'source')} of {len(sources)} could not be read: {joined([*named, *more], 'and')}. "
            "Claims that cite nothing else were not checked."
        )
    if cited.dangling:
        some = ", ".join(dict.fromkeys(cited.dangling[:NAMED]))
        found.append(f"{counted(len(cited.dangling), 'mark')} in the text that should cite lead to no source: {some}.")
    if cited.spare:
        are = "is" if len(cited.spare) == 1 else "are"
        found.append(f"{counted(len(cited.spare), 'source')} of its list {are} cited nowhere in the text.")
    if cited.uncited:
        found.append("The text cites nothing: each claim was checked against all that its list of sources names.")
    bare = sum(not claim.source_ids for claim in claims)
    if bare and not cited.uncited:
        found.append(
            f"{counted(bare, 'claim')} of {len(claims)} cite nothing: they were checked against what their paragraph "
            "or list cites, or, in a section that cites nothing, against all sources. The others were not checked."
        )
    return found


def _placeless(claim: Claim) -> Claim:
    """Return a claim whose quotes lead to no file: there are no files beside the page."""
    parts = ("quotes", "corroborating", "contradicting")
    update = {name: [one.model_copy(update={"artifact_file": ""}) for one in getattr(claim, name)] for name in parts}
    return claim.model_copy(update=update)
