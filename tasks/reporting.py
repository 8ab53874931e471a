"""The report: an outline of the notes, then one section at a time, each knowing the earlier ones; or one answer."""

from __future__ import annotations

from prefect.runtime import task_run

from fathom.citations import with_known_ids
from fathom.context import within_budget
from fathom.engine import Engine
from fathom.models import Note, Plan, ReportSection
from fathom.progress import Event, publish
from fathom.roles import ANSWER, OUTLINE, SECTION, AnswerRequest, OutlineAnswer, OutlineRequest, SectionRequest
from tasks.asking import ask
from tasks.durable import durable_task
from tasks.results import Outlined, Written

__all__ = ["make_outline", "write_answer", "write_section"]


@durable_task(name="outline", run_name="outline the report")
async def make_outline(plan: Plan, notes: list[Note], open_questions: list[str], _engine: Engine) -> Outlined:
    """Choose the report's sections."""
    request = OutlineRequest(
        query=_engine.start.query,
        today=_engine.start.today,
        plan=plan,
        notes=within_budget(notes, _engine.start.query, _engine.settings.max_context_tokens),
        open_questions=open_questions,
    )
    answer, usage = await ask(OUTLINE, request, _engine)
    return Outlined(outline=answer, usage=usage)


def _section_name() -> str:
    parameters = task_run.parameters
    return f"write: {parameters['outline'].sections[parameters['position']].heading}"


@durable_task(name="section", run_name=_section_name)
async def write_section(
    outline: OutlineAnswer, position: int, notes: list[Note], written: list[ReportSection], _engine: Engine
) -> Written:
    """Write the section at a position of the outline; citations of anything but the notes' sources are removed."""
    section = outline.sections[position]
    publish(Event("section", section.heading))
    wanted = {str(step_id) for step_id in section.step_ids}
    chosen = [note for note in notes if not wanted or str(note.step_id) in wanted] or notes
    request = SectionRequest(
        query=_engine.start.query,
        today=_engine.start.today,
        title=outline.title,
        headings=[s.heading for s in outline.sections],
        section=section,
        position=position,
        notes=within_budget(chosen, f"{section.heading} {section.focus}", _engine.settings.max_context_tokens),
        written=[earlier.markdown for earlier in written],
    )
    answer, usage = await ask(SECTION, request, _engine)
    known = {source_id for note in notes for source_id in note.source_ids}
    markdown = with_known_ids(answer.text.strip(), known)
    return Written(section=ReportSection(heading=section.heading, markdown=markdown), usage=usage)


@durable_task(name="answer", run_name="answer the question")
async def write_answer(notes: list[Note], _engine: Engine) -> Written:
    """Answer the question in at most 140 characters: a report of one section."""
    publish(Event("section", "the answer"))
    request = AnswerRequest(
        query=_engine.start.query,
        today=_engine.start.today,
        notes=within_budget(notes, _engine.start.query, _engine.settings.max_context_tokens),
    )
    answer, usage = await ask(ANSWER, request, _engine)
    return Written(section=ReportSection(heading="Answer", markdown=answer.text), usage=usage)
