"""What the report rests on: the stored texts, how good their sources are, and whether they support each claim."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import date

from fathom.config.models import EXTRACTIVE
from fathom.contradictions.finding import Said, find_contradictions
from fathom.evidence.stored import StoredText, stored_texts
from fathom.evidence.verify import check_claims
from fathom.extractive.statements import on_question
from fathom.models import Claim, Contradiction, Judgement, Note, Plan, Report, ToolResult, Usage
from fathom.roles import JUDGE, JudgeRequest
from fathom.roles.judge import Judged, Opinion
from fathom.run.engine import Engine
from fathom.sources.scoring import score_sources
from fathom.telemetry.progress import phase
from tasks.model_calls import ask
from tasks.results import Scored, Verified

JUDGED_AT_ONCE = 10  # claims of one request to the judge


async def read_texts(engine: Engine, results: Iterable[ToolResult]) -> list[StoredText]:
    """Return every stored text of the run, with its place in the artifacts."""
    found = [result for result in results if result.artifact_file]
    names = list(dict.fromkeys(result.artifact_file for result in found))
    files = await asyncio.gather(*map(engine.run_folder.load, names))
    return await asyncio.to_thread(stored_texts, dict(zip(names, files, strict=True)), found)


async def score_retrieved(
    plan: Plan, notes: list[Note], found: list[Contradiction], _texts: Sequence[StoredText], _engine: Engine
) -> Scored:
    """Score every source, and find contradictions besides those that the critic found."""
    titles = {text.source.source_id: text.source.title for text in _texts}
    said = [
        Said(quoted, source_ids, titles.get(source_ids[0], "") if source_ids else "")
        for note in notes
        for quoted, source_ids in note.quotations()
    ]
    # The critic was asked for those that matter; these were found by their words alone.
    new = on_question(_engine.start.question, notes, find_contradictions(said))
    contradictions = [*found, *(one for one in new if one not in found)]
    qualities = await asyncio.to_thread(
        score_sources,
        [text.source_text() for text in _texts],
        said,
        query=_engine.start.question,
        steps=plan.steps,
        contradictions=contradictions,
        today=date.fromisoformat(_engine.start.today),
        rules=_engine.settings.sources,
    )
    return Scored(qualities=qualities, contradictions=contradictions)


async def verify_claims(report: Report, _texts: Sequence[StoredText], _engine: Engine) -> Verified:
    """Check every sentence of the report against the stored bytes, and, if the settings say so, ask a model too."""
    credibility = {quality.source_id: quality.credibility for quality in report.qualities}
    claims = await asyncio.to_thread(check_claims, report, _texts, credibility)
    if not _engine.settings.report.judge or _engine.model_for(JUDGE).model == EXTRACTIVE:
        return Verified(claims=claims, usage=Usage())
    cases = [Judged(number=c.number, sentence=c.sentence, quotes=[quote.text for quote in c.quotes]) for c in claims]
    usage, opinions = Usage(), dict[int, Opinion]()
    for first in range(0, len(cases), JUDGED_AT_ONCE):
        phase(f"asking about claims {first + 1} to {min(first + JUDGED_AT_ONCE, len(cases))} of {len(cases)}")
        answer, used = await ask(JUDGE, JudgeRequest(claims=cases[first : first + JUDGED_AT_ONCE]), _engine)
        usage += used
        opinions |= {opinion.number: opinion for opinion in answer.opinions}
    model = _engine.model_for(JUDGE).model
    judged = [_with(claim, opinions.get(claim.number), model) for claim in claims]
    return Verified(claims=judged, usage=usage)


def _with(claim: Claim, opinion: Opinion | None, model: str) -> Claim:
    judgement = opinion and Judgement(verdict=opinion.verdict, model=model, reason=opinion.reason)
    return claim.model_copy(update={"judgement": judgement}) if judgement else claim
