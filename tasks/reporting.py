"""The report: an outline of the notes, then one section at a time, each knowing the others; or one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fathom.config.groups import Unsupported
from fathom.config.models import EXTRACTIVE
from fathom.config.templates import TemplateSection
from fathom.errors import AnswerInvalid
from fathom.evidence.claims import claims_of, marked, without
from fathom.evidence.stored import StoredText
from fathom.evidence.verify import check_claims
from fathom.extractive.sections import NOTHING_FOUND
from fathom.extractive.statements import quotations_for
from fathom.llm.base import Failure
from fathom.models import Answered, Claim, Contradiction, Note, Plan, Report, ReportSection, SourceText, Usage, Verdict
from fathom.retrieval.narrowing import narrow
from fathom.retrieval.working_memory import within_budget
from fathom.roles import ANSWER, OUTLINE, SECTION, AnswerRequest, OutlineAnswer, OutlineRequest, SectionRequest
from fathom.roles.base import RoleSpec
from fathom.roles.reporter import OutlinedSection, UnsupportedSentence
from fathom.run.engine import Engine
from fathom.text.citations import cited_ids, with_known_ids
from fathom.text.counting import counted
from tasks.durable import run_logger
from tasks.model_calls import answer_without_model, ask
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

    Citations of anything but the notes' sources are removed. Sentences that their sources do not support go back to the
    reporter once, with what the sources say. Its new version replaces the draft only if the sources support more of its
    sentences, or as many and it has fewer others; those are removed or marked, as the settings say.
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
    known = {source_id for note in notes for source_id in note.source_ids}
    answer, usage = await ask(SECTION, request, _engine)
    markdown, failing = with_known_ids(answer.text.strip(), known), list[Claim]()
    if request.is_given and _says_nothing(markdown):
        markdown = NOTHING_FOUND
    elif not _is_quoted(usage, _engine):
        markdown, failing, more = await _revise(request, markdown, known, _texts, _engine)
        usage += more
    return _written(section.heading, markdown, failing, usage, _engine)


async def _revise(
    request: SectionRequest, draft: str, known: set[str], texts: Sequence[StoredText], engine: Engine
) -> tuple[str, list[Claim], Usage]:
    """Return the section after its check, the claims that stayed unsupported, and what the revision used."""
    markdown, usage = draft, Usage()
    good, failing = await _checked(markdown, texts)
    if failing:
        again = request.model_copy(update={"draft": draft, "unsupported": list(map(_told, failing))})
        answer, usage = await ask(SECTION, again, engine)
        if usage.fallbacks:  # the draft without these sentences is better than what no model wrote
            usage = usage.model_copy(update={"fallbacks": []})
        else:
            rewritten = with_known_ids(answer.text.strip(), known)
            supported, unsupported = await _checked(rewritten, texts)
            if (len(supported), -len(unsupported)) > (len(good), -len(failing)):
                markdown, failing = rewritten, unsupported
    if failing:
        sentences = counted(len(failing), "sentence")
        run_logger().warning("%s of the section %r not supported by the sources", sentences, request.section.heading)
        edit = marked if engine.settings.report.unsupported is Unsupported.mark else without
        markdown = edit(markdown, {claim.sentence for claim in failing})
    if not claims_of([ReportSection(heading="", markdown=markdown)]):
        if request.is_given:  # no other matter may take the place of what belongs here
            return NOTHING_FOUND, failing, usage
        failure = Failure(code=AnswerInvalid.code, message="Nothing that the section says is in its sources.")
        answer, more = await answer_without_model(SECTION, request, failure, engine)
        usage, markdown = usage + more, with_known_ids(answer.text.strip(), known)
    return markdown, failing, usage


def _sections(engine: Engine) -> list[TemplateSection]:
    return engine.start.template.sections if engine.start.template else []


def _says_nothing(markdown: str) -> bool:
    return markdown.strip(" .*_\n").casefold() == "nothing found"


def _told(claim: Claim) -> UnsupportedSentence:
    evidence = [f"{quote.text} [{quote.source_id}]" for quote in claim.quotes]
    return UnsupportedSentence(sentence=claim.sentence, why=claim.complaints, evidence=evidence)


def _writes_without_model(role: RoleSpec[Any, Any], engine: Engine) -> bool:
    return engine.model_for(role).model == EXTRACTIVE


def _passages(
    notes: Sequence[Note], focus: str, texts: Sequence[StoredText], role: RoleSpec[Any, Any], engine: Engine
) -> list[SourceText]:
    """Return what the notes' sources say, in their own words: all of it without a model, which reads for nothing."""
    cited = {source_id for note in notes for source_id in note.source_ids}
    read = [text.source_text() for text in texts if text.source.source_id in cited]
    if _writes_without_model(role, engine):
        return read
    limit = engine.settings.passage_tokens
    return narrow(read, focus, limit).texts if limit else []


async def _checked(markdown: str, texts: Sequence[StoredText]) -> tuple[list[Claim], list[Claim]]:
    """Return the claims of a section that the sources they cite support, and those that they do not."""
    section = ReportSection(heading="", markdown=markdown)
    draft = Report(title="", query="", extractive=False, sections=[section], sources=[])
    cited = set(cited_ids(markdown))
    own = [text for text in texts if text.source.source_id in cited]  # other sources are compared in the end
    claims = await asyncio.to_thread(check_claims, draft, own, {})
    failing = [claim for claim in claims if claim.verdict is Verdict.unsupported]
    return [claim for claim in claims if claim.verdict is not Verdict.unsupported], failing


async def write_answer(
    notes: list[Note], authority: dict[str, float], _texts: Sequence[StoredText], _engine: Engine
) -> Written:
    """Answer the question in at most 140 characters: a report of one section.

    An answer that its sources do not support is replaced by a quotation, without the model.
    """
    shown = within_budget(notes, _engine.start.question, _engine.settings.max_context_tokens, authority)
    request = AnswerRequest(
        query=_engine.brief,
        today=_engine.start.today,
        notes=shown,
        passages=_passages(shown, "", _texts, ANSWER, _engine) if _writes_without_model(ANSWER, _engine) else [],
    )
    answer, usage = await ask(ANSWER, request, _engine)
    failing = [] if _is_quoted(usage, _engine) else (await _checked(answer.answer, _texts))[1]
    if failing:
        why = "; ".join(complaint for claim in failing for complaint in claim.complaints) or "its words are not there"
        failure = Failure(code=AnswerInvalid.code, message=f"The sources do not support the answer: {why}.")
        answer, more = await answer_without_model(ANSWER, request, failure, _engine)
        usage += more
    written = _written("Answer", answer.answer, failing, usage, _engine)
    written = written.model_copy(update={"confidence": answer.confidence})
    if not written.section.quoted:
        return written
    found = quotations_for(request.notes, request.passages).answer(request.query)
    return written.model_copy(update={"answered": Answered.yes if found else Answered.no})


def _is_quoted(usage: Usage, engine: Engine) -> bool:
    """Whether a section consists of quotations: no model wrote it."""
    return engine.settings.extractive or bool(usage.fallbacks)


def _written(heading: str, markdown: str, failing: list[Claim], usage: Usage, engine: Engine) -> Written:
    section = ReportSection(heading=heading, markdown=markdown, quoted=_is_quoted(usage, engine))
    return Written(section=section, unsupported=[claim.sentence for claim in failing], usage=usage)
