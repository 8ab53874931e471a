"""The report: an outline of the notes, then one section at a time, each knowing the others; or one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fathom.config.models import EXTRACTIVE
from fathom.config.templates import TemplateSection
from fathom.evidence.stored import StoredText
from fathom.extractive.sections import NOTHING_FOUND
from fathom.extractive.statements import quotations_for
from fathom.models import Answered, Contradiction, Note, Plan, ReportSection, SourceText, Usage, noted
from fathom.retrieval.narrowing import narrow
from fathom.retrieval.working_memory import within_budget
from fathom.roles import ANSWER, OUTLINE, SECTION, AnswerRequest, OutlineAnswer, OutlineRequest, SectionRequest
from fathom.roles.base import RoleSpec
from fathom.roles.reporter import OutlinedSection
from fathom.run.engine import Engine
from fathom.text.citations import with_known_ids
from tasks.model_calls import ask
from tasks.results import Outlined, Written


async def make_outline(
    plan: Plan,
    notes: list[Note],
    open_questions: list[str],
    contradictions: list[Contradiction],
    authority: dict[str, float],
    _texts: Sequence[StoredText],
    _engine: Engine,
) -> Outlined:
    """Choose the report's sections; a simple fact has one, which no model need think of."""
    if _engine.simple and not plan.remarks and not _writes_without_model(OUTLINE, _engine):
        section = OutlinedSection(heading=plan.steps[0].title, focus=f"Answer the question: {_engine.start.question}")
        return Outlined(outline=OutlineAnswer(title=plan.plan_title, sections=[section]), usage=Usage())
    shown = within_budget(notes, _engine.start.question, _engine.settings.max_context_tokens, authority)
    request = OutlineRequest(
        query=_engine.brief,
        today=_engine.start.today,
        plan=plan,
        notes=shown,
        open_questions=open_questions,
        contradictions=contradictions,
        authority={i: authority[i] for note in shown for i in note.source_ids if i in authority},
        passages=_passages(shown, "", _texts, OUTLINE, _engine) if _writes_without_model(OUTLINE, _engine) else [],
        words=_engine.words,
        sections=_sections(_engine),
    )
    answer, usage = await ask(OUTLINE, request, _engine)
    return Outlined(outline=answer, usage=usage)


async def write_section(
    outline: OutlineAnswer,
    position: int,
    notes: list[Note],
    written: list[ReportSection],
    authority: dict[str, float],
    _texts: Sequence[StoredText],
    _engine: Engine,
) -> Written:
    """Write the section at a position of the outline.

    Citations of anything but the notes' sources are removed.
    """
    section = outline.sections[position]
    wanted = {str(step_id) for step_id in section.step_ids}
    chosen = [note for note in notes if not wanted or str(note.step_id) in wanted] or notes
    focus = f"{section.heading} {section.focus}"
    shown = within_budget(chosen, focus, _engine.settings.max_context_tokens, authority)
    request = SectionRequest(
        query=_engine.brief,
        today=_engine.start.today,
        title=outline.title,
        headings=[s.heading for s in outline.sections],
        section=section,
        position=position,
        notes=shown,
        written=[other.markdown for other in written],
        passages=await asyncio.to_thread(_passages, shown, focus, _texts, SECTION, _engine),
        words=_engine.words and max(40, _engine.words // len(outline.sections)),
        sections=_sections(_engine),
    )
    known = noted(notes)
    answer, usage = await ask(SECTION, request, _engine)
    markdown = with_known_ids(answer.text.strip(), known)
    if request.is_given and _says_nothing(markdown):
        markdown = NOTHING_FOUND
    return _written(section.heading, markdown, usage, _engine)


def _sections(engine: Engine) -> list[TemplateSection]:
    return engine.start.template.sections if engine.start.template else []


def _says_nothing(markdown: str) -> bool:
    return markdown.strip(" .*_\n").casefold() == "nothing found"


def _writes_without_model(role: RoleSpec[Any, Any], engine: Engine) -> bool:
    return engine.model_for(role).model == EXTRACTIVE


def _passages(
    notes: Sequence[Note], focus: str, texts: Sequence[StoredText], role: RoleSpec[Any, Any], engine: Engine
) -> list[SourceText]:
    """Return what the notes' sources say, in their own words: all of it without a model, which reads for nothing."""
    cited = noted(notes)
    read = [text.source_text() for text in texts if text.source.source_id in cited]
    if _writes_without_model(role, engine):
        return read
    limit = engine.settings.passage_tokens
    return narrow(read, focus, limit).texts if limit else []


async def write_answer(
    notes: list[Note], authority: dict[str, float], _texts: Sequence[StoredText], _engine: Engine
) -> Written:
    """Answer the question in at most 140 characters: a report of one section."""
    shown = within_budget(notes, _engine.start.question, _engine.settings.max_context_tokens, authority)
    request = AnswerRequest(
        query=_engine.brief,
        today=_engine.start.today,
        notes=shown,
        passages=_passages(shown, "", _texts, ANSWER, _engine) if _writes_without_model(ANSWER, _engine) else [],
    )
    answer, usage = await ask(ANSWER, request, _engine)
    written = _written("Answer", answer.answer, usage, _engine)
    written = written.model_copy(update={"confidence": answer.confidence})
    if not written.section.quoted:
        return written
    found = quotations_for(request.notes, request.passages).answer(request.query)
    return written.model_copy(update={"answered": Answered.yes if found else Answered.no})


def _is_quoted(usage: Usage, engine: Engine) -> bool:
    """Whether a section consists of quotations: no model wrote it."""
    return engine.settings.extractive or bool(usage.fallbacks)


def _written(heading: str, markdown: str, usage: Usage, engine: Engine) -> Written:
    return Written(
        section=ReportSection(heading=heading, markdown=markdown, quoted=_is_quoted(usage, engine)), usage=usage
    )
