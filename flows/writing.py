"""The second half of the pipeline: from the notes to a report with checked claims."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date

from fathom.config.groups import Execution, Role
from fathom.config.settings import Mode
from fathom.evidence.claims import claims_of
from fathom.evidence.judging import JUDGEMENTS
from fathom.evidence.provenance import PROVENANCE, build
from fathom.evidence.stored import StoredText
from fathom.extractive.questions import naming_words
from fathom.llm.base import ExchangeRecord
from fathom.llm.prompts import prepare
from fathom.models import (
    Answered,
    Coverage,
    Report,
    ReportSection,
    RunManifest,
    Stage,
    StepCoverage,
    Unanswered,
    Usage,
    noted,
)
from fathom.report.answer import confidence_within
from fathom.report.assembly import (
    coverage,
    limitations,
    making,
    marked_alone,
    marked_disputed,
    next_steps,
    open_questions,
    own_case,
    with_cited,
    with_places,
)
from fathom.report.chapters import unread_warnings
from fathom.report.html import page_template, render_html
from fathom.report.markdown import render_markdown
from fathom.report.prose import inline_html
from fathom.report.unanswered import UNANSWERED, explain, render_unanswered
from fathom.retrieval.synonyms import same_terms
from fathom.roles import ANSWER, COMPRESSOR, CRITIC, JUDGE, OUTLINE, SECTION
from fathom.run.engine import Engine
from fathom.run.state import ResearchState, phases_of
from fathom.sources.domains import site_of, usable
from fathom.sources.scoring import confidence
from fathom.sources.warnings import report_warnings
from fathom.storage.store import EXCHANGES, MANIFEST, NOTES, REPORT, REPORT_PAGE, REPORT_TEXT, json_bytes
from fathom.tasks.checking import Reviewer, rate_retrieved, read_texts, score_retrieved, with_links
from fathom.tasks.planning import look_for_words
from fathom.tasks.reporting import make_outline, write_answer, write_section
from fathom.tasks.results import Outlined, Scored, Written
from fathom.tasks.start import seconds_worked
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.progress import phase
from fathom.text.plain import clean_line, counted
from fathom.text.wording import Wording, wording

MOST_TEXT = 8_000  # characters of a section in the audit log


def load(*, by_model: bool) -> None:
    """Load what a report is made with, once for this process: tables, a parser and templates, 0.2 seconds."""
    for spec in (COMPRESSOR, CRITIC, OUTLINE, SECTION) if by_model else ():
        prepare(spec)
    same_terms("")
    site_of("")
    inline_html("")
    page_template()


async def write_report(engine: Engine, run: ResearchState) -> Report | None:
    """Score the sources, write the report or the answer, and check its claims against the stored bytes.

    There is no report when no source is good enough for the settings.
    """
    phase(f"rating the quality of {counted(len(run.sources), 'source')}", Stage.synthesizing)
    retrieved = run.retrieved or await rate_retrieved(run, engine)
    texts, scored = retrieved.texts, score_retrieved(retrieved, run.reflection.contradictions if run.reflection else [])
    rated = {quality.source_id: quality for quality in scored.qualities}
    sure = [confidence(note.origins, run.sources, rated) for note in run.notes]
    notes = [note.model_copy(update={"confidence": one}) for note, one in zip(run.notes, sure, strict=True)]
    await engine.run_folder.save_json(NOTES, notes)
    noted_before = noted(run.notes)
    run.remember(usable(run.notes, scored.qualities, engine.settings.sources))
    if not run.notes:
        return None
    reviewer = Reviewer(run.notes, texts, scored, engine)
    report = await _draft(engine, run, scored, texts, reviewer)
    phase(f"checking {counted(len(claims_of(report.sections)), 'claim')} against the sources")
    claims, report = await asyncio.gather(reviewer.verify(report), with_links(report, engine))
    report = report.model_copy(update={"sections": marked_disputed(report.sections, claims)})
    alone = 0
    if engine.settings.sources.require_corroboration:
        sections, alone = marked_alone(report.sections, claims)
        report = report.model_copy(update={"sections": sections})
    for role, usage in reviewer.usage.items():
        if usage.llm_calls or usage.fallbacks:
            run.spend(role, usage)
    if reviewer.asked:
        await engine.run_folder.save_json(JUDGEMENTS, reviewer.asked)
    await engine.audit.record(
        AuditType.synthesis_completed,
        Role.reporter,
        report.title,
        sections=[section.heading for section in report.sections],
        sources=len(report.sources),
        claims=dict(sorted(Counter(claim.verdict.value for claim in claims).items())),
        left_out=reviewer.removed,
        qualities=[round(quality.overall, 2) for quality in report.qualities],
    )
    today, words = date.fromisoformat(engine.start.today), wording(engine.language)
    warnings = [
        *engine.start.warnings,
        *unread_warnings(run.unread, words),
        *_not_reviewed(run, scored, noted_before, engine, words),
        *report_warnings(
            *(claims, report.qualities, report.sources, today, words), marked=alone, renewed=reviewer.renewed
        ),
    ]
    seconds = await seconds_worked(engine.start.run_id, _engine=engine)
    writer = "" if report.extractive else engine.model_for(SECTION).model
    used = engine.start.template
    checked: dict[str, object] = {
        "claims": claims,
        "sources": with_places(report.sources, claims),
        "warnings": warnings,
        "made": making(
            run, as_of=engine.start.today, model=writer, seconds=seconds, template=used.title if used else ""
        ),
        "remarks": run.plan.remarks,
    }
    if engine.settings.mode is Mode.answer:
        checked["limitations"] = own_case(run.plan, claims, words)
        checked["confidence"] = confidence_within(report.confidence, claims)
    else:
        checked["limitations"] = limitations(
            run, claims, reviewer.removed, engine.model_for(JUDGE).model if engine.settings.judges else "", words
        )
        checked["next_steps"] = next_steps(run, words)
    return report.model_copy(update=checked)


def _not_reviewed(run: ResearchState, scored: Scored, read: set[str], engine: Engine, words: Wording) -> list[str]:
    """Return a sentence on the sources that were left out because they are not known to be peer-reviewed."""
    if not engine.settings.sources.peer_reviewed:
        return []
    other = [q.source_id for q in scored.qualities if not (q.peer_reviewed or q.type == "document")]
    titles = [clean_line(run.sources[i].title or run.sources[i].url) for i in other if i in read]
    said = "Left out, because they are not known to be peer-reviewed: {titles}."
    return [words(said, titles="; ".join(titles))] if titles else []


async def save_explanation(engine: Engine, run: ResearchState) -> Unanswered:
    """Explain why there is no report, save it as Markdown, and return it."""
    phase("looking for what comes closest", Stage.synthesizing)
    texts = await read_texts(engine, (call.result for call in run.all_calls))
    query = engine.start.question
    catalogue = await look_for_words(naming_words(query), engine.tools.settings, _engine=engine)
    read = [text.source_text() for text in texts]
    unanswered = await asyncio.to_thread(
        explain,
        query,
        run.all_calls,
        read,
        catalogue,
        engine.settings,
        unread=run.unread,
        cut=run.cut,
        language=engine.language,
    )
    await engine.run_folder.save_text(UNANSWERED, render_unanswered(query, unanswered))
    return unanswered


async def save_report(engine: Engine, run: ResearchState, report: Report) -> None:
    """Save the report as Markdown, JSON and HTML."""
    phase("saving the report")
    await engine.run_folder.save_text(REPORT_TEXT, render_markdown(report))
    await engine.run_folder.save_json(REPORT, report)
    # The page shows what calls used, which a replay reads from their records; what the whole run used is not recorded.
    await engine.run_folder.save_text(REPORT_PAGE, await asyncio.to_thread(render_html, report, phases_of(run)))


async def save_exchanges(engine: Engine) -> None:
    """Save what models were sent and what they answered, in the order of their answers; nothing without a model."""
    if engine.exchanges:
        await engine.run_folder.save(EXCHANGES, _as_lines(engine.exchanges))


def _as_lines(exchanges: Sequence[ExchangeRecord]) -> bytes:
    """Return exchanges as lines of JSON, in order: megabytes, of which no copy is left when this returns."""
    lines = sorted((one.at, one.model_dump_json().encode()) for one in exchanges)
    return b"\n".join([*(line for _, line in lines), b""])


async def provenance_of(engine: Engine, run: ResearchState, report: Report, last: Mapping[str, bytes]) -> bytes:
    """Return provenance.json: the data for checking the run again, with the hash of every other file.

    The `last` files, by name, are still to be written.
    """
    phase("saving the evidence")
    folder = engine.run_folder
    names = [name for name in await engine.store.list(folder.folder) if name not in (*last, PROVENANCE)]
    files = {**dict(zip(names, await asyncio.gather(*map(folder.load, names)), strict=True)), **last}
    record = await asyncio.to_thread(
        build,
        manifest=RunManifest.model_validate_json(files[MANIFEST]),
        plan=run.plan,
        rounds=run.rounds,
        # In the order of the plan, as for the check of the claims: parallel steps finish in any order.
        calls={str(s.step_id): run.calls[str(s.step_id)] for s in run.plan.steps if str(s.step_id) in run.calls},
        report=report,
        files=files,
    )
    return json_bytes(record)


async def _draft(
    engine: Engine, run: ResearchState, scored: Scored, texts: Sequence[StoredText], reviewer: Reviewer
) -> Report:
    """Return the report before its claims are checked."""
    questions, steps, answered, unanswered_part, confidence = list[str](), list[StepCoverage](), Answered.yes, "", None
    if engine.settings.mode is Mode.answer:  # the plan and the notes describe the research
        phase("writing the answer")
        written = await write_answer(run.memory, scored, texts, _engine=engine)
        run.spend(ANSWER.name, written.usage)
        title = run.plan.plan_title
        await _tell_section(engine, written.section, 1, 1, 0)
        sections = await reviewer.review([written.section])
        answered, confidence = written.answered, written.confidence
    else:
        phase("choosing the sections of the report")
        questions, steps = open_questions(run), coverage(run, scored.qualities)
        outlined = await make_outline(run.plan, run.memory, questions, scored, texts, _engine=engine)
        run.spend(OUTLINE.name, outlined.usage)
        outline = outlined.outline
        title, answered, unanswered_part = outline.title, outline.answered, outline.unanswered_part
        sections = await _sections(engine, run, outlined, scored, texts, reviewer=reviewer)
    judged = run.judged
    draft = Report(
        title=title,
        query=engine.start.query,
        language=engine.language,
        extractive=engine.settings.extractive,
        sections=sections,
        sources=list(run.sources.values()),
        open_questions=questions,
        contradictions=scored.contradictions,
        coverage=steps,
        covered=judged.coverage if judged and judged.coverage != Coverage() else None,
        unread=run.unread,
        qualities=scored.qualities,
        answered=answered,
        unanswered_part=unanswered_part if answered is Answered.partly else "",
        sufficiency=judged.sufficiency_score if judged else 0,
        wanted_sufficiency=run.sufficiency if judged else 0,
        sufficiency_reason=judged.reasoning if judged else "",
        stop=run.stop.value if run.stop else "",
        parent=engine.start.parent.named() if engine.start.parent else None,
        confidence=confidence,
    )
    return with_cited(draft)


async def _sections(
    engine: Engine,
    run: ResearchState,
    outlined: Outlined,
    scored: Scored,
    texts: Sequence[StoredText],
    *,
    reviewer: Reviewer,
) -> list[ReportSection]:
    """Write the sections and have their claims judged.

    If a model writes, the first section comes last, because it sums up the corrected others; in parallel execution the
    others are written side by side.
    """
    outline = outlined.outline
    positions = list(range(len(outline.sections)))
    by_model = not engine.settings.extractive and not outlined.usage.fallbacks
    parts = [positions[1:], positions[:1]] if by_model else [positions]
    at_once = len(positions) if by_model and engine.settings.execution is Execution.parallel else 1
    sections: dict[int, ReportSection] = {}

    async def write(position: int, others: list[ReportSection]) -> Usage:
        written: Written = await write_section(outline, position, run.memory, others, scored, texts, _engine=engine)
        sections[position] = written.section
        await _tell_section(engine, written.section, len(sections), len(positions), position)
        return written.usage

    for part in filter(None, parts):
        for first in range(0, len(part), at_once):
            together = part[first : first + at_once]
            number = len(sections) + 1
            which = f"sections {number} to {number + len(together) - 1}" if len(together) > 1 else f"section {number}"
            headings = "; ".join(outline.sections[p].heading for p in together)
            phase(f"writing {which} of {len(positions)}: {headings}")
            others = [sections[p] for p in sorted(sections)]
            for usage in await asyncio.gather(*(write(position, others) for position in together)):
                run.spend(SECTION.name, usage)
        sections |= dict(zip(part, await reviewer.review([sections[p] for p in part]), strict=True))
    return [sections[p] for p in positions]


async def _tell_section(engine: Engine, section: ReportSection, number: int, of: int, position: int) -> None:
    """Record a section as soon as it is written, for followers of the run; its claims are not checked yet."""
    await engine.audit.record(
        AuditType.section_written,
        Role.reporter,
        section.heading,
        number=number,
        of=of,
        position=position,
        text=section.markdown[:MOST_TEXT],
        whole=len(section.markdown) <= MOST_TEXT,
    )
