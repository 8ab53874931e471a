"""The report: an outline of the notes, then one section at a time, each knowing the others; or one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

from fathom.config.groups import EXTRACTIVE
from fathom.config.templates import TemplateSection
from fathom.evidence.stored import StoredText
from fathom.evidence.support import spaced_words
from fathom.extractive.reporter import NOTHING_FOUND, answered
from fathom.models import Brief, Contradiction, Note, Plan, ReportSection, Source, SourceText, Usage, Width, noted
from fathom.retrieval.narrowing import Memory, narrow
from fathom.roles import ANSWER, OUTLINE, SECTION, OutlineAnswer, OutlineRequest, SectionRequest, ShortAnswerRequest
from fathom.roles.base import RoleSpec
from fathom.roles.reporter import OutlinedSection
from fathom.run.engine import Engine
from fathom.sources.scoring import trusted
from fathom.tasks.model_calls import ask, ask_overview
from fathom.tasks.results import Outlined, Scored, Written
from fathom.text.boilerplate import asks_of_orders, without_orders
from fathom.text.citations import cited_above_code, with_known_ids
from fathom.text.terms import query_terms, terms
from fathom.text.tokens import count_tokens
from fathom.text.wording import wording

RUN_BRIEF_TOKENS = 3_000
"""Tokens of briefs beside the notes of a section: the run's brief."""
UNLIKE = 0.15
"""Difference in trust, 0 to 1, from which the outline is told of it."""


async def make_outline(
    plan: Plan,
    memory: Memory,
    open_questions: list[str],
    scored: Scored,
    _texts: Sequence[StoredText],
    _engine: Engine,
) -> Outlined:
    """Choose the report's sections; a simple question gets one section, for which no model is asked."""
    one = _engine.simple or (len(plan.steps) == 1 and plan.width is Width.narrow)
    if one and not plan.remarks and not _sections(_engine) and not _writes_without_model(OUTLINE, _engine):
        section = OutlinedSection(heading=plan.steps[0].title, focus=f"Answer the question: {_engine.start.question}")
        return Outlined(outline=OutlineAnswer(title=plan.plan_title, sections=[section]), usage=Usage())
    authority = _trusted(scored)
    known = memory.within(_engine.settings.max_context_tokens, _engine.start.question, authority)
    cited = known.cited
    request = OutlineRequest(
        query=_engine.brief_for(OUTLINE),
        today=_engine.start.today,
        plan=plan,
        notes=known.notes,
        briefs=known.briefs,
        open_questions=open_questions,
        contradictions=scored.contradictions,
        sources=_sources(_texts, cited),
        authority=_unlike({source_id: quality for source_id, quality in authority.items() if source_id in cited}),
        passages=_passages(known.notes, "", _texts, OUTLINE, _engine)
        if _writes_without_model(OUTLINE, _engine)
        else [],
        words=_engine.words,
        sections=_sections(_engine),
        wanted=_engine.wanted,
    )
    answer, usage = await ask_overview(OUTLINE, request, _engine)
    return Outlined(outline=answer, usage=usage)


async def write_section(
    outline: OutlineAnswer,
    position: int,
    memory: Memory,
    written: list[ReportSection],
    scored: Scored,
    _texts: Sequence[StoredText],
    _engine: Engine,
) -> Written:
    """Write the section at a position of the outline, from the notes of its steps and the briefs of the others.

    The answering section, which comes last if a model writes, sums up the `written` ones and the briefs.
    Citations of anything but the notes' sources are removed.
    """
    section = outline.sections[position]
    wanted = {str(step_id) for step_id in section.step_ids}
    notes = [note for note in memory.notes if not wanted or note.steps & wanted] or memory.notes
    focus = f"{section.heading} {section.focus}"
    sums_up = position == 0 and bool(written)
    known = _for_section(memory, notes, sums_up).within(_engine.settings.max_context_tokens, focus, _trusted(scored))
    request = SectionRequest(
        query=_engine.brief_for(SECTION),
        today=_engine.start.today,
        title=outline.title,
        outlined=outline.sections,
        position=position,
        notes=known.notes,
        briefs=known.briefs,
        written=[f"## {other.heading}\n\n{other.markdown}" for other in written],
        contradictions=_concerning(known, scored, focus if position else ""),
        sources=_sources(_texts, known.cited),
        passages=await asyncio.to_thread(_passages, known.notes, focus, _texts, SECTION, _engine),
        words=_engine.words and max(40, _engine.words // len(outline.sections)),
        sections=_sections(_engine),
        wanted=_engine.wanted,
    )
    answer, usage = await ask(SECTION, request, _engine)
    markdown = cited_above_code(with_known_ids(answer.text.strip(), noted(memory.notes)))
    if request.is_given and markdown.strip(" .*_\n").casefold() == "nothing found":
        markdown = wording(_engine.language)(NOTHING_FOUND)
    return _written(section.heading, markdown, usage, _engine)


def _concerning(memory: Memory, scored: Scored, focus: str = "") -> list[Contradiction]:
    """Return the contradictions of which a source of the notes is a side, and that have a word of the focus, if any.

    The other side may be of notes that are not shown.
    """
    read, about = noted(memory.notes), set(query_terms(focus))
    found = [one for one in scored.contradictions if not read.isdisjoint(one.source_ids)]
    return [one for one in found if not focus or not about.isdisjoint(terms(f"{one.claim_a} {one.claim_b}"))]


def _for_section(memory: Memory, notes: list[Note], sums_up: bool) -> Memory:
    """Return the material of a section: its notes whole, and briefs of the rest; all briefs if it sums up."""
    if sums_up:
        return memory
    own = {note.artifact_file for note in notes}
    kept: list[Brief] = []
    left = RUN_BRIEF_TOKENS
    for brief in memory.briefs:
        tokens = count_tokens(brief.text)
        if own.isdisjoint(brief.files) and tokens <= left:
            kept.append(brief)
            left -= tokens
    return Memory(notes=notes, briefs=kept)


def _trusted(scored: Scored) -> dict[str, float]:
    return trusted(scored.qualities, scored.contradictions)


def _unlike(authority: dict[str, float]) -> dict[str, float]:
    """Return the trust in some sources if it tells any of them from the others, else nothing."""
    return authority if authority and max(authority.values()) - min(authority.values()) >= UNLIKE else {}


def _sources(texts: Sequence[StoredText], cited: Collection[str]) -> list[Source]:
    """Return the sources that are cited, in the order in which they were read."""
    read = {text.source.source_id: text.source for text in reversed(texts) if text.source.source_id in cited}
    return [*reversed(read.values())]


def _sections(engine: Engine) -> list[TemplateSection]:
    return engine.start.template.sections if engine.start.template else []


def _writes_without_model(role: RoleSpec[Any, Any], engine: Engine) -> bool:
    return engine.model_for(role).model == EXTRACTIVE


def _passages(
    notes: Sequence[Note], focus: str, texts: Sequence[StoredText], role: RoleSpec[Any, Any], engine: Engine
) -> list[SourceText]:
    """Return the texts of the notes' sources: all of them without a model, since reading then costs nothing.

    A model is shown passages with a sentence that has a word of the section or of the question and that no note quotes,
    without paragraphs that give orders to models.
    """
    cited = noted(notes)
    read = [text.source_text() for text in texts if text.source.source_id in cited]
    if _writes_without_model(role, engine):
        return read
    if not asks_of_orders(query_terms(engine.start.question)):
        read = [text.model_copy(update={"text": without_orders(text.text)}) for text in read]
    about = set(query_terms(f"{focus} {engine.start.question}"))
    quoted = [quoted for note in notes for quoted, _ in note.quotations()]
    headers = [f"{name}: {value}" for text in read for name, value in text.fields.items()]
    told = "".join(map(spaced_words, [*quoted, *headers]))

    def needed(sentence: str) -> bool:
        return not about.isdisjoint(terms(sentence)) and spaced_words(sentence) not in told

    limit = engine.settings.passage_tokens
    return narrow(read, focus, limit, needed=needed).texts if limit else []


async def write_answer(memory: Memory, scored: Scored, _texts: Sequence[StoredText], _engine: Engine) -> Written:
    """Answer the question in at most 140 characters: a report of one section."""
    known = memory.within(_engine.settings.max_context_tokens, _engine.start.question, _trusted(scored))
    request = ShortAnswerRequest(
        query=_engine.brief_for(ANSWER),
        today=_engine.start.today,
        notes=known.notes,
        briefs=known.briefs,
        contradictions=_concerning(known, scored),
        passages=_passages(known.notes, "", _texts, ANSWER, _engine) if _writes_without_model(ANSWER, _engine) else [],
        wanted=_engine.wanted,
    )
    answer, usage = await ask(ANSWER, request, _engine)
    written = _written("Answer", answer.answer, usage, _engine)
    written = written.model_copy(update={"confidence": answer.confidence})
    if not written.section.quoted:
        return written
    return written.model_copy(update={"answered": answered(request)})


def _written(heading: str, markdown: str, usage: Usage, engine: Engine) -> Written:
    quoted = engine.settings.extractive or bool(usage.fallbacks)  # no model wrote it
    return Written(section=ReportSection(heading=heading, markdown=markdown, quoted=quoted), usage=usage)
