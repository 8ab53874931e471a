"""Outlining without a model: the short answer, then a section for each step that has enough of its own to say."""

from __future__ import annotations

from textwrap import shorten

from fathom.extractive.questions import questions_of
from fathom.extractive.sections import CITED, MORE, write_section
from fathom.extractive.statements import quotations_for
from fathom.extractive.wording import capitalized
from fathom.models import Answered, PlanStep
from fathom.retrieval.duplicates import is_near_duplicate
from fathom.roles import OutlineAnswer, OutlineRequest, SectionRequest
from fathom.roles.reporter import OutlinedSection
from fathom.text.terms import terms

ANSWER, CLOSEST = "Answer", "What comes closest"
MAX_SECTIONS = 7
TITLE_CHARS = 200
LEAST_NEW = 2  # sentences, rows or items that a section must have of its own


def outline(request: OutlineRequest) -> OutlineAnswer:
    """Return the short answer first, then the template's sections or those that the steps make."""
    answered = _answered(request)
    heading = CLOSEST if answered is Answered.no else ANSWER
    answer = OutlinedSection(heading=heading, focus=f"Answer the question: {request.query}", step_ids=[])
    # What a template has is added to every outline.
    groups = [] if request.sections else _telling(request, answer)
    return OutlineAnswer(
        title=_title(request.query),
        answered=answered,
        sections=[answer, *(_section(steps, request) for steps in groups)],
    )


def _telling(request: OutlineRequest, answer: OutlinedSection) -> list[list[PlanStep]]:
    """Group the steps into sections with something of their own to say beside the answer.

    Writing is cheap here, so each section is tried: one that has too little left to quote joins its nearest neighbour.
    """
    sections = [answer]
    written = [_draft(request, sections, [])]
    kept: list[list[PlanStep]] = []
    for steps in _fitting(_groups(request)):
        section = _section(steps, request)
        draft = _draft(request, [*sections, section], written)
        if len(CITED.findall(draft)) >= LEAST_NEW:
            kept.append(steps)
            sections.append(section)
            written.append(draft)
        elif kept:
            _nearest(steps[0], kept).extend(steps)
    return kept


def _title(query: str) -> str:
    """Return the question, cut where it is long."""
    title = shorten(query, TITLE_CHARS, placeholder=" …")
    return title if len(title) > len(" …") else f"{query.strip()[: TITLE_CHARS - 2]} …"


def _answered(request: OutlineRequest) -> Answered:
    """Return whether quotations answer the question, may do so, or have something on only some of its parts."""
    quotations = quotations_for(request.notes, request.passages)
    found = {quotations.answer(question) for question in questions_of(request.query)}
    if Answered.no in found:
        return Answered.no if len(found) == 1 else Answered.partly
    return Answered.maybe if Answered.maybe in found else Answered.yes


def _section(steps: list[PlanStep], request: OutlineRequest) -> OutlinedSection:
    title, asked = steps[0].title, questions_of(request.query)
    return OutlinedSection(
        # Where there is one question, it is the title of the report.
        heading=MORE if [title.rstrip("?").casefold()] == [each.casefold() for each in asked] else capitalized(title),
        focus=" ".join(step.description for step in steps),
        step_ids=[step.step_id for step in steps],
    )


def _draft(request: OutlineRequest, sections: list[OutlinedSection], written: list[str]) -> str:
    """Return the last of some sections as it would be written."""
    ids = {str(step_id) for step_id in sections[-1].step_ids}
    return write_section(
        SectionRequest(
            query=request.query,
            today=request.today,
            title=request.plan.plan_title,
            outlined=sections,
            position=len(sections) - 1,
            notes=[note for note in request.notes if not ids or note.steps & ids],
            passages=request.passages,
            written=written,
        )
    ).text


def _groups(request: OutlineRequest) -> list[list[PlanStep]]:
    """Group the steps with notes; steps with near-identical titles go together."""
    groups: list[list[PlanStep]] = []
    answered = {step_id for note in request.notes for step_id in note.steps}
    for step in request.plan.steps:
        if str(step.step_id) not in answered:
            continue
        near = next((g for g in groups if any(is_near_duplicate(step.title, s.title) for s in g)), None)
        if near is None:
            groups.append([step])
        else:
            near.append(step)
    return groups


def _fitting(groups: list[list[PlanStep]]) -> list[list[PlanStep]]:
    """Return at most as many groups as the outline has room for; the last ones join those they resemble."""
    kept = [list(group) for group in groups[: MAX_SECTIONS - 1]]
    for group in groups[MAX_SECTIONS - 1 :]:
        _nearest(group[0], kept).extend(group)
    return kept


def _nearest(step: PlanStep, groups: list[list[PlanStep]]) -> list[PlanStep]:
    words = set(terms(step.title))
    return max(groups, key=lambda group: len(words & set(terms(" ".join(s.title for s in group)))))
