"""Every claim of a report checked, and the whole check of a run repeated from its stored files alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import ValidationError

from fathom.errors import StoreError
from fathom.evidence.claims import Statement, claims_of, comparable
from fathom.evidence.corroboration import corroborate
from fathom.evidence.followed import as_left
from fathom.evidence.passages import Search
from fathom.evidence.provenance import PROVENANCE, RULES, Provenance, digest_of, read, results_of, sources_of
from fathom.evidence.stored import StoredText, read_quote, stored_texts
from fathom.evidence.surroundings import Surroundings
from fathom.evidence.verdict import Check, check
from fathom.models import Claim, Model, Quote, Report, Verdict
from fathom.models.claims import Problem
from fathom.text.citations import cited_ids

_RAW = "__step"  # in the name of every raw tool output
# Not the complaints: another version of Fathom may word them in another way.
_COMPARED = (
    *("section", "sentence", "source_ids", "verdict", "score", "quotes"),
    *("corroboration", "corroborating", "contradicting"),
)
_UNCITED = Check(Verdict.unsupported, 0.0, [], ["no source is cited"])


class Verification(Model):
    """The result of repeating the check."""

    run_id: str
    query: str
    files: int  # that were hashed
    quotes: int  # that were read back
    claims: list[Claim]  # as recorded
    problems: list[Problem]
    rechecked: bool = True  # whether the verdicts were made again; those of older rules cannot be compared

    @property
    def ok(self) -> bool:
        """Whether everything is as it was recorded."""
        return not self.problems


def check_claims(report: Report, texts: Sequence[StoredText], credibility: Mapping[str, float]) -> list[Claim]:
    """Check every claim of a report against everything that was read; the pipeline and `verify_run` both do it so.

    The claims are numbered from 1 in reading order; `credibility` is as of `corroborate`.
    """
    statements = claims_of(report.sections)
    search, surroundings = Search(texts), Surroundings()
    return [
        _claim(number, statement, search, credibility, surroundings) for number, statement in enumerate(statements, 1)
    ]


def _claim(
    number: int, statement: Statement, search: Search, credibility: Mapping[str, float], surroundings: Surroundings
) -> Claim:
    section, sentence, source_ids, kind = statement
    checked = check(sentence, search, source_ids, kind) if source_ids else _UNCITED
    found = corroborate(sentence, search, credibility, kind, source_ids)
    return Claim(
        number=number,
        section=section,
        sentence=sentence,
        source_ids=list(source_ids),
        verdict=checked.verdict,
        score=checked.score,
        quotes=list(map(surroundings.quote, checked.passages)),
        complaints=checked.complaints,
        corroboration=found.corroboration,
        corroborating=list(map(surroundings.quote, found.corroborating)),
        contradicting=list(map(surroundings.quote, found.contradicting)),
    )


def verify_run(files: Mapping[str, bytes]) -> Verification:
    """Check every file, quote and verdict of a run again, from the recorded files and all raw outputs by name.

    Raises:
        StoreError: there is no record, or none that can be read.
    """
    if PROVENANCE not in files:
        raise StoreError(f"The run has no {PROVENANCE}: it has not finished.", next_step="fathom resume RUN")
    record, wrong = read(files[PROVENANCE])
    problems = [Problem(file=PROVENANCE, message=message) for message in wrong]
    problems += _files(record, files)
    texts = stored_texts(files, results_of(record))
    if sources_of(texts, record.qualities) != record.sources:
        problems.append(Problem(file=PROVENANCE, message="the sources are not those of the stored artifacts"))
    problems += [problem for claim in record.claims for problem in misquotations(claim, files)]
    problems += _report(record, files, texts)
    return Verification(
        run_id=record.run.run_id,
        query=record.run.query,
        files=len(record.files) + 1,
        quotes=sum(len(_all_quotes(claim)) for claim in record.claims),
        claims=record.claims,
        problems=problems,
        rechecked=record.rules == RULES,
    )


def _files(record: Provenance, files: Mapping[str, bytes]) -> Iterator[Problem]:
    for name, digest in record.files.items():
        if name not in files:
            yield Problem(file=name, message="the file is missing")
        elif digest_of(as_left(name, files[name])) != digest:
            yield Problem(file=name, message="the file was changed: its SHA-256 is not the recorded one")
    for name in sorted(files):
        if _RAW in name and name not in record.files:
            yield Problem(file=name, message="no recorded call made this file")
    for call in record.calls:
        if call.artifact_file and record.files.get(call.artifact_file) != call.sha256:
            yield Problem(file=call.artifact_file, message=f"call {call.number} returned something else")


def misquotations(claim: Claim, files: Mapping[str, bytes]) -> Iterator[Problem]:
    """Yield each quote of a claim that is not, or no longer, in the stored bytes."""
    for quote in _all_quotes(claim):
        try:
            if read_quote(quote, files[quote.artifact_file]) == quote.text:
                continue
            message = f"bytes {quote.start} to {quote.end} do not say what is quoted"
        except KeyError:
            message = "the quote's file is missing"
        except ValueError:
            message = f"bytes {quote.start} to {quote.end} are not text"
        yield Problem(file=quote.artifact_file, claim=claim.number, message=message)


def _all_quotes(claim: Claim) -> list[Quote]:
    return [*claim.quotes, *claim.corroborating, *claim.contradicting]


def _report(record: Provenance, files: Mapping[str, bytes], texts: Sequence[StoredText]) -> Iterator[Problem]:
    if "report.json" not in files:
        if record.claims:
            yield Problem(file="report.json", message="there are claims, but no report")
        return
    try:
        report = Report.model_validate_json(files["report.json"])
    except ValidationError as error:
        yield Problem(file="report.json", message=f"it is not a report: {error.errors()[0]['msg']}")
        return
    rendered = comparable(files.get("report.md", b"").decode(errors="replace"))
    for recorded in record.claims:
        if comparable(recorded.sentence) not in rendered:
            yield Problem(file="report.md", claim=recorded.number, message="its sentence is not in the report")
    known = {source.source_id for source in record.sources}
    for source_id in (i for section in report.sections for i in cited_ids(section.markdown) if i not in known):
        yield Problem(file="report.json", message=f"it cites {source_id}, which was never retrieved")
    if record.rules == RULES:
        yield from _verdicts(record, report, texts)


def _verdicts(record: Provenance, report: Report, texts: Sequence[StoredText]) -> Iterator[Problem]:
    claims = check_claims(report, texts, {key: quality.credibility for key, quality in record.qualities.items()})
    if len(claims) != len(record.claims):
        yield Problem(file="report.json", message=f"it makes {len(claims)} claims, {len(record.claims)} are recorded")
    for claim, recorded in zip(claims, record.claims, strict=False):
        for field in _COMPARED:
            if getattr(claim, field) != getattr(recorded, field):
                message = f"{field.replace('_', ' ')} is not what the check finds: {_brief(getattr(claim, field))}"
                yield Problem(file=PROVENANCE, claim=recorded.number, message=message)


def _brief(value: object) -> str:
    text = f"{len(value)} of them" if isinstance(value, list) else str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
