"""The second half of the pipeline: from the notes to a report whose every claim was checked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from fathom.config.models import Role
from fathom.config.settings import Mode
from fathom.evidence.provenance import PROVENANCE, build, to_bytes
from fathom.evidence.stored import StoredText
from fathom.models import Claim, Report, ReportSection, RunManifest
from fathom.report.html import render_html
from fathom.report.markdown import (
    assemble,
    coverage,
    limitations,
    next_steps,
    open_questions,
    phases_of,
    render_markdown,
    warnings,
)
from fathom.roles import ANSWER, JUDGE, OUTLINE, SECTION
from fathom.run.engine import Engine
from fathom.run.state import RunState
from fathom.sources.rules import usable
from fathom.telemetry.audit_events import AuditType
from tasks.evidence import read_texts, score_retrieved, verify_claims
from tasks.reporting import make_outline, write_answer, write_section
from tasks.results import Scored


async def write_report(engine: Engine, run: RunState) -> Report | None:
    """Weigh the sources, write the report or the answer, and check what it claims against the stored bytes.

    There is none when no source is good enough for the settings.
    """
    texts = await read_texts(engine, (call.result for call in run.all_calls))
    found = run.reflection.contradictions if run.reflection else []
    scored = await score_retrieved(run.plan, run.notes, found, texts, _engine=engine)
    run.notes = usable(run.notes, scored.qualities, engine.settings.sources)
    if not run.notes:
        return None
    write = _answer if engine.settings.mode is Mode.answer else _sections
    report, left_out = await write(engine, run, scored, texts)
    verified = await verify_claims(report, texts, _engine=engine)
    if engine.settings.report.judge:
        run.spend(JUDGE.name, verified.usage)
    verdicts = Counter(claim.verdict.value for claim in verified.claims)
    await engine.audit.record(
        AuditType.synthesis_completed,
        Role.reporter,
        report.title,
        sections=[section.heading for section in report.sections],
        sources=len(report.sources),
        claims=dict(sorted(verdicts.items())),
        left_out=left_out,
    )
    return _checked(engine, run, report, verified.claims, left_out)


async def save_report(engine: Engine, run: RunState, report: Report) -> str:
    """Save the report as Markdown, as data and as a page, and return its Markdown."""
    markdown = render_markdown(report)
    await engine.run_folder.save_text("report.md", markdown)
    await engine.run_folder.save_json("report.json", report)
    # What calls took is read from their records in a replay, and so gives the same page; what a run took is not.
    await engine.run_folder.save_text("report.html", await asyncio.to_thread(render_html, report, phases_of(run)))
    return markdown


async def save_provenance(engine: Engine, run: RunState, report: Report) -> None:
    """Save the record by which everything can be checked again, with the hash of every other file of the run."""
    folder = engine.run_folder
    names = [name for name in await engine.store.list(folder.folder) if name != PROVENANCE]
    files = dict(zip(names, await asyncio.gather(*map(folder.load, names)), strict=True))
    record = await asyncio.to_thread(
        build,
        manifest=RunManifest.model_validate_json(files["run.json"]),
        plan=run.plan,
        rounds=run.rounds,
        # In the order of the plan, as the claims were checked: steps side by side finish in any order.
        calls={str(s.step_id): run.calls[str(s.step_id)] for s in run.plan.steps if str(s.step_id) in run.calls},
        report=report,
        files=files,
    )
    await folder.save_text(PROVENANCE, to_bytes(record).decode())


async def _sections(
    engine: Engine, run: RunState, scored: Scored, texts: Sequence[StoredText]
) -> tuple[Report, list[str]]:
    """Write the sections one by one, and last, where a model writes, the first, which sums them up."""
    questions = open_questions(run.plan, run.reflection, run.notes)
    authority = {quality.source_id: quality.overall for quality in scored.qualities}
    outlined = await make_outline(run.plan, run.notes, questions, scored.contradictions, authority, _engine=engine)
    run.spend(OUTLINE.name, outlined.usage)
    outline, left_out = outlined.outline, list[str]()
    order = list(range(len(outline.sections)))
    if not engine.settings.extractive and not outlined.usage.fallbacks:
        order = [*order[1:], 0]
    sections: dict[int, ReportSection] = {}
    for position in order:
        others = [sections[p] for p in sorted(sections)]
        written = await write_section(outline, position, run.notes, others, authority, texts, _engine=engine)
        sections[position] = written.section
        left_out += written.unsupported
        run.spend(SECTION.name, written.usage)
    report = assemble(
        query=engine.start.query,
        title=outline.title,
        extractive=engine.settings.extractive,
        sections=[sections[p] for p in sorted(sections)],
        sources=run.sources,
        steps=coverage(run.plan, run.calls, run.notes),
        questions=questions,
        contradictions=scored.contradictions,
        qualities=scored.qualities,
    )
    return report, left_out


async def _answer(
    engine: Engine, run: RunState, scored: Scored, texts: Sequence[StoredText]
) -> tuple[Report, list[str]]:
    """Write a report of one short answer; how it was researched is in the plan and the notes."""
    authority = {quality.source_id: quality.overall for quality in scored.qualities}
    written = await write_answer(run.notes, authority, texts, _engine=engine)
    run.spend(ANSWER.name, written.usage)
    report = assemble(
        query=engine.start.query,
        title=run.plan.plan_title,
        extractive=engine.settings.extractive,
        sections=[written.section],
        sources=run.sources,
        steps=[],
        questions=[],
        contradictions=scored.contradictions,
        qualities=scored.qualities,
    )
    return report, written.unsupported


def _checked(engine: Engine, run: RunState, report: Report, claims: list[Claim], left_out: list[str]) -> Report:
    """Return the report with its claims and what a reader must know of them."""
    told: dict[str, object] = {"claims": claims, "warnings": warnings(report, claims, engine.start.today)}
    if engine.settings.mode is not Mode.answer:
        told |= {"limitations": limitations(run, claims, left_out), "next_steps": next_steps(run.reflection)}
    return report.model_copy(update=told)
