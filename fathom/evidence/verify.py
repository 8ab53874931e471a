"""Checking every claim of a report, and repeating the whole check of a run from its stored files alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from fathom.errors import StoreError
from fathom.evidence.bearing import place_of
from fathom.evidence.claims import ClaimSentence, claims_of, comparable
from fathom.evidence.corroboration import Judged, corrects, corroborate, is_credible, outweighs, refuting
from fathom.evidence.judging import JUDGEMENTS, Exchange, Key, Settled, key_of, settled
from fathom.evidence.passages import Search, SourcePassage
from fathom.evidence.provenance import PROVENANCE, RULES, Provenance, as_left, digest_of, read, results_of, sources_of
from fathom.evidence.stored import StoredText, read_quote, stored_texts
from fathom.evidence.trace import Surroundings
from fathom.evidence.words import check
from fathom.models import Claim, Contradiction, Model, Quote, Report, Verdict
from fathom.models.evidence import Discrepancy
from fathom.models.plan import Refuted
from fathom.roles.judge import ShownPassage
from fathom.storage.store import REPORT, REPORT_TEXT
from fathom.text.citations import cited_ids, without_addresses

MAX_QUOTES = 4
_RAW = "__step"  # in the name of every raw tool output
# Not the complaints: another version of Fathom may word them in another way.
_COMPARED = (
    *("section", "sentence", "source_ids", "verdict", "score", "quotes"),
    *("corroboration", "corroborating", "contradicting", "judgement"),
)


class Verification(Model):
    """The result of repeating the check."""

    run_id: str
    query: str
    files: int  # that were hashed
    quotes: int  # that were read back
    claims: list[Claim]  # as recorded
    problems: list[Discrepancy]
    rechecked: bool = True  # whether the verdicts were made again; verdicts of older rules cannot be compared

    @property
    def ok(self) -> bool:
        """Whether everything matches the record."""
        return not self.problems


def check_claims(
    report: Report,
    texts: Sequence[StoredText],
    credibility: Mapping[str, float],
    judged: Mapping[Key, Settled] | None = None,
) -> list[Claim]:
    """Check every claim of a report against everything that was read.

    The claims are numbered from 1 in reading order. `credibility` is as for `corroborate`, and `judged` holds a model's
    verdicts on the claims that words alone do not settle.
    """
    return Checking(texts, report.contradictions).claims(claims_of(report.sections), credibility, judged or {})


class Refuting(NamedTuple):
    """What a claim tells and should not, and a passage of a source that says otherwise."""

    refuted: Refuted
    passage: SourcePassage


class _Checked(NamedTuple):
    claim: Claim
    judged: Settled | None
    not_credible: frozenset[str]


def _not_credible(claim: Claim, credibility: Mapping[str, float]) -> frozenset[str]:
    """Return the ids of the sources for and against a claim that do not count, on which its corroboration rests."""
    against = {quote.source_id for quote in claim.contradicting}
    found = against.union(quote.source_id for quote in claim.corroborating)
    weak = {one for one in against if not outweighs(one, claim.source_ids, credibility)}
    return frozenset(weak.union(one for one in found if not is_credible(one, credibility)))


class Checking:
    """Checks claims against everything that was read, each against the sources that it names itself.

    The pipeline and `verify_run` both use this. The pipeline checks sections before the report is whole: a claim that
    is checked again keeps its result if the judge's verdict and the credibility of what bears on it are the same.
    """

    def __init__(self, texts: Sequence[StoredText], disagreements: Iterable[Contradiction] = ()) -> None:
        self._texts = texts
        self._refuted = [refuted for one in disagreements for refuted in one.refuted]
        self.search = Search(texts)
        self._surroundings = Surroundings()
        self._checked: dict[tuple[ClaimSentence, tuple[Refuted, ...]], _Checked] = {}

    def claims(
        self, statements: Sequence[ClaimSentence], credibility: Mapping[str, float], judged: Mapping[Key, Settled]
    ) -> list[Claim]:
        """Return claims with their verdicts, numbered from 1; the arguments are as for `check_claims`."""
        refuted = self._refuted_for(statements)
        return [
            self._numbered(number, one, credibility, judged.get(key_of(one)), refuted[one])
            for number, one in enumerate(statements, 1)
        ]

    def refuting(self, statements: Sequence[ClaimSentence]) -> dict[ClaimSentence, list[Refuting]]:
        """Return what corrects, withdraws or disputes claims of a report: for each a passage of each such source.

        Also where the sentence before it corrects it: only from one behind it is it clear that it is what came before.
        """
        return {
            statement: [
                Refuting(one, passage)
                for one in refuted
                for passage in refuting(statement.sentence, statement.source_ids, one, self.search)
            ]
            for statement, refuted in self._refuted_for(statements, before=False).items()
        }

    def replacing(self, statement: ClaimSentence, said: Settled | None) -> list[SourcePassage]:
        """Return the passage of a later edition by which a claim no longer holds, as the judge found."""
        place = place_of(said.replaced[1], self._texts) if said and said.replaced else None
        return [self.search.narrowed(statement.sentence, *place)] if place else []

    def _refuted_for(
        self, statements: Sequence[ClaimSentence], *, before: bool = True
    ) -> dict[ClaimSentence, tuple[Refuted, ...]]:
        """Return what each claim of a report may not tell.

        What a neighbour corrects, it may tell: it is what came before. Without `before`, only the one behind it counts.
        One side of what nothing settles, it may tell if its paragraph, list or table names the other, or its section
        does so below.
        """
        named: dict[Refuted, dict[int, list[tuple[int, int]]]] = {}  # the other side's places by section
        for one in (one for one in self._refuted if not one.settled):
            for number, statement in enumerate(statements):
                if corrects(statement.sentence, statement.source_ids, one):
                    places = named.setdefault(one, {}).setdefault(statement.section, [])
                    places.append((number, statement.block))
        return {
            statement: tuple(
                one
                for one in self._refuted
                if not any(
                    place > number or block == statement.block
                    for place, block in named.get(one, {}).get(statement.section, ())
                )
                and not any(corrects(*near, one) for near in (statement.neighbours if before else statement.behind))
            )
            for number, statement in enumerate(statements)
        }

    def _numbered(
        self,
        number: int,
        statement: ClaimSentence,
        credibility: Mapping[str, float],
        said: Settled | None,
        refuted: tuple[Refuted, ...],
    ) -> Claim:
        alike = (statement._replace(section=0), refuted)
        known = self._checked.get(alike)
        if known is None or known.judged != said or known.not_credible != _not_credible(known.claim, credibility):
            claim = self._claim(statement, credibility, said, refuted)
            known = self._checked[alike] = _Checked(claim, said, _not_credible(claim, credibility))
        return known.claim.model_copy(update={"number": number, "section": statement.section})

    def _claim(
        self,
        statement: ClaimSentence,
        credibility: Mapping[str, float],
        judged: Settled | None,
        refuted: Sequence[Refuted],
    ) -> Claim:
        """Return a claim with its verdict, its quotes and the number of sources that say the same."""
        words = check(statement, self.search)
        said = None if words.verdict is Verdict.supported else judged
        decided = self._passages(statement, said) if said else []
        by_judge = Judged(said.judgement.verdict, decided) if said else None
        found = corroborate(
            *(statement.sentence, self.search, credibility, statement.kind, statement.source_ids),
            head=statement.head,
            judged=by_judge,
            otherwise=[
                *self.replacing(statement, judged),
                *(p for one in refuted for p in refuting(statement.sentence, statement.source_ids, one, self.search)),
            ],
        )
        known = {passage.text.source.source_id for passage in decided}
        nearest = [passage for passage in words.passages if passage.text.source.source_id not in known]
        if words.verdict is not Verdict.supported:  # a passage that only comes close gets no link
            nearest = [passage for passage in nearest if without_addresses(passage.words) == passage.words]
        return Claim(
            number=1,
            section=statement.section,
            sentence=statement.sentence,
            source_ids=list(statement.source_ids),
            verdict=said.judgement.verdict if said else words.verdict,
            score=words.score,
            quotes=list(map(self._surroundings.quote, [*decided, *nearest][:MAX_QUOTES])),
            complaints=words.complaints if not said or said.judgement.verdict is not Verdict.supported else [],
            corroboration=found.corroboration,
            corroborating=list(map(self._surroundings.quote, found.corroborating)),
            contradicting=list(map(self._surroundings.quote, found.contradicting)),
            judgement=said.judgement if said else None,
        )

    def _passages(self, statement: ClaimSentence, said: Settled) -> list[SourcePassage]:
        """Return the passages by which the judge decided, each narrowed to the part about the claim."""
        places = (place_of(passage, self._texts) for _, passage in said.shown)
        return [self.search.narrowed(statement.sentence, *place) for place in places if place]


def verify_run(files: Mapping[str, bytes]) -> Verification:
    """Check every file, quote and verdict of a run again, from the recorded files and all raw outputs by name.

    Raises:
        StoreError: the record is missing or cannot be read.
    """
    if PROVENANCE not in files:
        raise StoreError(f"The run has no {PROVENANCE}, because it has not finished.", next_step="fathom resume RUN")
    record, wrong = read(files[PROVENANCE])
    problems = [Discrepancy(file=PROVENANCE, message=message) for message in wrong]
    problems += _files(record, files)
    texts = stored_texts(files, results_of(record))
    if sources_of(texts, record.qualities) != record.sources:
        problems.append(Discrepancy(file=PROVENANCE, message="the sources do not match the stored artifacts"))
    problems += [problem for claim in record.claims for problem in misquotations(claim, files)]
    asked, wrong_judgements = _judgements(files)
    problems += wrong_judgements
    problems += _report(record, files, texts, settled(asked))
    return Verification(
        run_id=record.run.run_id,
        query=record.run.query,
        files=len(record.files) + 1,
        quotes=sum(len(_all_quotes(claim)) for claim in record.claims),
        claims=record.claims,
        problems=problems,
        rechecked=record.rules == RULES,
    )


def _files(record: Provenance, files: Mapping[str, bytes]) -> Iterator[Discrepancy]:
    for name, digest in record.files.items():
        if name not in files:
            yield Discrepancy(file=name, message="the file is missing")
        elif digest_of(as_left(name, files[name])) != digest:
            yield Discrepancy(file=name, message="the file was changed: its SHA-256 is not the recorded one")
    for name in sorted(files):
        if _RAW in name and name not in record.files:
            yield Discrepancy(file=name, message="no recorded call made this file")
    for call in record.calls:
        text = {call.artifact_file: call.sha256} if call.artifact_file else {}
        for name, digest in {**text, **call.files}.items():
            if record.files.get(name) != digest:
                yield Discrepancy(file=name, message=f"call {call.number} returned something else")


def misquotations(claim: Claim, files: Mapping[str, bytes]) -> Iterator[Discrepancy]:
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
        yield Discrepancy(file=quote.artifact_file, claim=claim.number, message=message)


def _all_quotes(claim: Claim) -> list[Quote]:
    return [*claim.quotes, *claim.corroborating, *claim.contradicting]


def _judgements(files: Mapping[str, bytes]) -> tuple[list[Exchange], list[Discrepancy]]:
    """Return the judge's requests and answers, and the passages shown to it that the files do not have."""
    try:
        asked = TypeAdapter(list[Exchange]).validate_json(files.get(JUDGEMENTS, b"[]"))
    except ValidationError as error:
        return [], [Discrepancy(file=JUDGEMENTS, message=f"it is not a record of a judge: {error.errors()[0]['msg']}")]
    shown = (passage for one in asked for _, passage in one.request.passages.values())
    missing = {(passage.artifact_file, passage.start, passage.end) for passage in shown if not _stands(passage, files)}
    return asked, [
        Discrepancy(file=name, message=f"bytes {start} to {end} do not say what was shown to the judge")
        for name, start, end in sorted(missing)
    ]


def _stands(passage: ShownPassage, files: Mapping[str, bytes]) -> bool:
    quote = Quote(source_id="", **passage.model_dump(include={"artifact_file", "start", "end", "sha256", "text"}))
    try:
        return read_quote(quote, files[passage.artifact_file]) == passage.text
    except (KeyError, ValueError):
        return False


def _report(
    record: Provenance, files: Mapping[str, bytes], texts: Sequence[StoredText], judged: Mapping[Key, Settled]
) -> Iterator[Discrepancy]:
    if REPORT not in files:
        if record.claims:
            yield Discrepancy(file=REPORT, message="there are claims, but no report")
        return
    try:
        report = Report.model_validate_json(files[REPORT])
    except ValidationError as error:
        yield Discrepancy(file=REPORT, message=f"it is not a report: {error.errors()[0]['msg']}")
        return
    rendered = comparable(files.get(REPORT_TEXT, b"").decode(errors="replace"))
    for recorded in record.claims:
        if comparable(recorded.sentence) not in rendered:
            yield Discrepancy(file=REPORT_TEXT, claim=recorded.number, message="its sentence is not in the report")
    known = {source.source_id for source in record.sources}
    for source_id in (i for section in report.sections for i in cited_ids(section.markdown) if i not in known):
        yield Discrepancy(file=REPORT, message=f"it cites {source_id}, which was never retrieved")
    if record.rules == RULES:
        yield from _verdicts(record, report, texts, judged)


def _verdicts(
    record: Provenance, report: Report, texts: Sequence[StoredText], judged: Mapping[Key, Settled]
) -> Iterator[Discrepancy]:
    credibility = {key: quality.credibility for key, quality in record.qualities.items()}
    claims = check_claims(report, texts, credibility, judged)
    if len(claims) != len(record.claims):
        yield Discrepancy(file=REPORT, message=f"it makes {len(claims)} claims, {len(record.claims)} are recorded")
    for claim, recorded in zip(claims, record.claims, strict=False):
        for field in _COMPARED:
            if getattr(claim, field) != getattr(recorded, field):
                message = (
                    f"{field.replace('_', ' ')} differs from the result of the check: {_brief(getattr(claim, field))}"
                )
                yield Discrepancy(file=PROVENANCE, claim=recorded.number, message=message)


def _brief(value: object) -> str:
    text = f"{len(value)} of them" if isinstance(value, list) else str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
