"""What runs have found, for whoever may read them: claims, sources, files, and whether all of it holds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher

from fathom.changes.model import CHANGES, Changes
from fathom.client.shapes import (
    ArtifactInfo,
    ArtifactList,
    AuditTrail,
    Checkup,
    ClaimList,
    Form,
    LibraryHits,
    NoteList,
    SourceList,
    SourceUse,
    what_is,
)
from fathom.config.inputs import LOOK_FOR, check_words
from fathom.errors import InvalidInput, NoReport, NotInstalled, NotThere, RunNotFound, StoreError
from fathom.evidence import words
from fathom.evidence.claims import ClaimSentence, comparable
from fathom.evidence.passages import Search
from fathom.evidence.provenance import PROVENANCE, Provenance, SourceRecord, read, results_of
from fathom.evidence.stored import stored_texts
from fathom.evidence.trace import Surroundings, Trace
from fathom.evidence.verify import misquotations
from fathom.flows.runs.comparing import traced, verified
from fathom.flows.runs.finding import KnownRun
from fathom.flows.runs.library import MOST_HITS
from fathom.flows.runs.stored import no_report, read_audit
from fathom.models import CitedAnswer, Claim, Plan, Verdict
from fathom.report.exporting import export, files_for
from fathom.report.markdown import cited_answer
from fathom.service.caller import Caller
from fathom.service.run_list import ListedRun
from fathom.service.run_view import API, plain
from fathom.service.runs import RunHandle, RunService

MOST_ANSWERS = 20  # of a conversation
SAME = 0.85  # how alike a text and a claim are that say the same
_TEXT = (".json", ".jsonl", ".md", ".html", ".txt")


async def exported(run: RunHandle, form: Form) -> bytes:
    """Return the report of a run in one of its forms.

    Raises:
        NoReport: it has no report, or none yet.
        NotThere: it has no table, which the form needs.
        NotInstalled: a library that the form needs is not installed.
    """
    files = await run.files(files_for([form]))
    written, failed = await asyncio.to_thread(export, files, [form])
    if why := failed.get(form):
        raise why if isinstance(why, NotThere) else NotInstalled(why.message, next_step=why.next_step)
    return written[form]


async def answers(service: RunService, caller: Caller, runs: Sequence[ListedRun]) -> list[CitedAnswer | None]:
    """Return the answers of the last `MOST_ANSWERS` of some runs; None for all others, and without a report."""

    async def answer(run: ListedRun) -> CitedAnswer | None:
        if run.result is None:
            return None
        if run.result.cited_answer or not run.result.report:
            return run.result.cited_answer
        try:  # of an earlier version, whose results have no answer
            return cited_answer(await (await service.open(caller, run.summary.id)).report_data())
        except (RunNotFound, NoReport, StoreError):  # one damaged run must not hide the others
            return None

    found = await asyncio.gather(*map(answer, runs[-MOST_ANSWERS:]))
    return [*[None] * (len(runs) - len(found)), *found]


async def claims(run: RunHandle, verdict: Verdict | None = None) -> ClaimList:
    """Return the claims of a run's report, all of them or the claims with one verdict.

    Raises:
        NoReport: it has no report, or none yet.
    """
    found = (await run.report_data()).claims
    chosen = [claim for claim in found if verdict in (None, claim.verdict)]
    counts = Counter(claim.verdict for claim in found)
    return ClaimList(run_id=run.run_id, counts={one: counts[one] for one in Verdict}, claims=chosen)


async def sources(run: RunHandle) -> SourceList:
    """Return the sources of a run, the cited ones first.

    Raises:
        NoReport: it has no report, or none yet.
    """
    report = await run.report_data()
    record, _ = read((await run.files([PROVENANCE]))[PROVENANCE])
    numbers = {source.source_id: number for number, source in enumerate(report.sources, 1)}
    calls = Counter(source_id for call in record.calls for source_id in call.source_ids)
    found = [
        SourceUse(
            **source.model_dump(include={"source_id", "title", "url", "kind", "published"}),
            reference=source.reference,
            number=numbers.get(source.source_id),
            claims=[claim.number for claim in report.claims if source.source_id in claim.source_ids],
            calls=calls[source.source_id],
            texts=list(dict.fromkeys(text.artifact_file for text in source.texts)),
            quality=source.quality,
        )
        for source in record.sources
    ]
    last = len(numbers) + 1
    return SourceList(run_id=run.run_id, sources=sorted(found, key=lambda source: source.number or last))


async def plan(run: RunHandle) -> Plan:
    """Return the plan of a run, with the status of each step.

    Raises:
        NotThere: it has none yet.
    """
    if found := (await run.read()).plan:
        return found
    raise NotThere("The run has no plan yet.", next_step="wait for it")


async def notes(run: RunHandle) -> NoteList:
    """Return what a run noted from what it read.

    Raises:
        NoReport: it has not finished.
    """
    folder = run.finished()
    if (made := await folder.notes()) is None:
        raise await no_report(folder)
    return NoteList(run_id=run.run_id, notes=made)


async def artifacts(run: RunHandle) -> ArtifactList:
    """Return the files of a run."""
    base = f"{API}/runs/{run.run_id}/artifacts"
    infos = [
        ArtifactInfo(name=name, bytes=size, what=what_is(name), link=f"{base}/{name}")
        for name, size in sorted((await _sizes(run.found)).items())
    ]
    return ArtifactList(run_id=run.run_id, artifacts=infos)


async def artifact(run: RunHandle, name: str) -> bytes:
    """Return a file of a run. Only administrators see paths of the server, if the file has some.

    Raises:
        NotThere: it has no such file.
    """
    if not run.found.folder or name not in await _sizes(run.found):
        how = f"GET {API}/runs/{run.run_id}/artifacts lists them"
        raise NotThere(f"The run has no file {name[:60]!r}.", next_step=how)
    data = (await run.files([name]))[name]
    hide = await run.hiding() if name.endswith(_TEXT) else None
    return hide(data) if hide else data


async def audit(run: RunHandle) -> AuditTrail:
    """Return the audit log of a run, its chain checked.

    Raises:
        NotThere: it has none yet.
    """
    if not run.found.folder:
        raise NotThere("The run has no audit log yet.", next_step="wait for it")
    log = await read_audit(run.found.stored)
    trail = AuditTrail(run_id=run.run_id, whole=log.whole, broken=log.broken, events=log.events)
    return plain(trail, await run.hiding())


async def check(run: RunHandle) -> Checkup:
    """Check a run again from its stored files.

    Raises:
        NoReport: it has no report, or its evidence was removed.
        StoreError: its record is damaged.
    """
    run.finished()
    result = await verified(run.found.stored)
    wrong = {problem.claim for problem in result.problems}
    confirmed = sum(claim.number not in wrong for claim in result.claims)
    more = "" if result.ok or confirmed < len(result.claims) else ", but files were changed"
    return Checkup(
        run_id=run.run_id,
        ok=result.ok,
        said=f"checked now: {confirmed} of {len(result.claims)}{more}",
        checked=datetime.now(UTC).isoformat(timespec="seconds"),
        claims=len(result.claims),
        confirmed=confirmed,
        **result.model_dump(include={"files", "quotes", "rechecked"}),
        problems=result.problems,
    )


async def follow_claim(run: RunHandle, number: int) -> Trace:
    """Return a claim of a run with the way to each of its quotes.

    Raises:
        NotThere: its report has no claim of that number.
        NoReport: it has no report, or its evidence was removed.
    """
    run.finished()
    try:
        return (await traced(run.found.stored, number))[0]
    except InvalidInput as error:
        raise NotThere(error.message, next_step=error.next_step) from None


async def check_sentence(
    run: RunHandle, number: int, text: str
) -> tuple[Claim, Mapping[str, SourceRecord], list[bool]]:
    """Check the claim of a number, or any sentence, against all that a run has read.

    Return the claim, the sources by their ids, and of each quote whether the stored bytes still say it.

    Raises:
        NoReport: it has no report, or none yet.
        InvalidInput: there is no claim of that number.
    """
    record, _ = read((await run.files([PROVENANCE]))[PROVENANCE])
    if number and not 1 <= number <= len(record.claims):
        raise InvalidInput(f"There is no claim {number}.", next_step=f"claims are numbered 1 to {len(record.claims)}")
    claim = record.claims[number - 1] if number else _said(text, record.claims)
    if claim is None:
        names = sorted({call.artifact_file for call in record.calls if call.artifact_file})
        files = await run.files(names)
        claim = _judged(text, record, files)
    else:
        files = await run.files(sorted({quote.artifact_file for quote in claim.quotes}))
    alone = (claim.model_copy(update={"corroborating": [], "contradicting": [], "quotes": [q]}) for q in claim.quotes)
    intact = [not [*misquotations(one, files)] for one in alone]
    return claim, {source.source_id: source for source in record.sources}, intact


def _said(text: str, claims: Sequence[Claim]) -> Claim | None:
    """Return the claim of a report that a text is, or nearly is."""
    wanted = comparable(text).casefold()

    def alike(claim: Claim) -> float:
        return SequenceMatcher(None, wanted, comparable(claim.sentence).casefold(), autojunk=False).ratio()

    nearest = max(claims, key=alike, default=None)
    return nearest if nearest and alike(nearest) >= SAME else None


def _judged(text: str, record: Provenance, files: Mapping[str, bytes]) -> Claim:
    texts = stored_texts(files, results_of(record))
    ids = tuple(dict.fromkeys(one.source.source_id for one in texts))
    found = words.check(ClaimSentence(0, text, ids, "prose"), Search(texts))
    quotes = list(map(Surroundings().quote, found.passages))
    return Claim(
        number=0,
        section=0,
        sentence=text,
        source_ids=list(dict.fromkeys(quote.source_id for quote in quotes)),
        verdict=found.verdict,
        score=found.score,
        quotes=quotes,
        complaints=found.complaints,
    )


async def changes(run: RunHandle) -> Changes:
    """Return what changed from the run of a watch before this one.

    Raises:
        NotThere: it was not compared with another.
    """
    compared = await run.found.folder.stored(Changes, CHANGES) if run.found.folder else None
    if compared is None:
        raise NotThere("The run was not compared with another run: only the later runs of a watch are compared.")
    return compared


def stem(run: RunHandle) -> str:
    """Return what the file name of a run's exported report begins with."""
    return run.found.folder.folder.rpartition("/")[2] if run.found.folder else run.run_id


async def _sizes(found: KnownRun) -> dict[str, int]:
    """Return the size of each file of a run, by its name, without files that are being written."""
    if not found.folder:
        return {}
    folder = f"{found.folder.folder}/"
    sizes = {path.removeprefix(folder): size for path, size in (await found.folder.store.sizes(folder[:-1])).items()}
    return {name: size for name, size in sizes.items() if "/" not in name and not name.startswith(".")}


async def search_library(service: RunService, caller: Caller, query: str, limit: int) -> LibraryHits:
    """Return the sentences closest to a query in the runs that the caller may read.

    Raises:
        InvalidInput: the query is empty or too long.
    """

    async def may_read(run_id: str) -> bool:
        if caller.is_admin:
            return True
        if own := await service.owners.stored(run_id):
            return (await service.links.with_guest(own, run_id, caller)).readable_by(caller)
        try:  # Prefect alone may know whose it is
            return bool(await service.open(caller, run_id))
        except RunNotFound:
            return False

    hits = await service.library.search(check_words(query, LOOK_FOR), min(limit, MOST_HITS), may_read)
    linked = [hit.model_copy(update={"link": f"/runs/{hit.run_id}"}) for hit in hits]
    return LibraryHits(query=query, hits=linked)
