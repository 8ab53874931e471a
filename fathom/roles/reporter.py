"""The reporter makes an outline from the notes, then writes one section at a time; or it answers in a sentence."""

from __future__ import annotations

from operator import not_
from textwrap import shorten
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from fathom.config.groups import Role
from fathom.config.templates import TemplateSection
from fathom.models import Answered, Contradiction, Draft, Plan, SourceText
from fathom.roles.base import Answer, Complaint, OverviewAnswer, Remembering, RoleSpec, Text, bounds
from fathom.roles.planner import StepId
from fathom.text.citations import cited_above_code, cited_ids, with_known_ids, without_citations
from fathom.text.terms import query_terms

MAX_SECTIONS = 10
ANSWER_CHARS = 140  # maximum characters of an answer, without its citations
HEADING_CHARS = 120
TITLE_WORDS = 20  # a longer title is a sentence or two


class WritingRequest(Remembering):
    """What each part of a report is written from."""

    query: str
    today: str
    passages: list[SourceText] = []  # of the notes' sources, for a section or a writer without a model
    wanted: list[str] = Field([], exclude_if=not_)  # what the plan says about the report
    contradictions: list[Contradiction] = Field([], exclude_if=not_)  # where the notes' sources disagree


class OutlineRequest(WritingRequest):
    """The question and the evidence for an outline."""

    plan: Plan
    open_questions: list[str] = []
    authority: dict[str, float] = {}  # trust in the sources, by id, 0 to 1, where it differs; whatever their relevance
    words: int | None = None  # approximate length of the report
    sections: list[TemplateSection] = Field([], exclude_if=not_)  # sections of the template, which follow the answer


class OutlinedSection(Answer):
    """A section to be written."""

    heading: str = Field(
        min_length=1, description="A heading that says what the section shows.", json_schema_extra=bounds(100)
    )
    focus: str = Field(description="What the section must say, in one or two sentences.")
    step_ids: list[StepId] = Field(
        [], description="Ids of the steps whose notes it uses; empty: all notes.", json_schema_extra=bounds(items=10)
    )


class OutlineAnswer(OverviewAnswer):
    """The report's outline."""

    title: str = Field(min_length=1, description="Title of the report.", json_schema_extra=bounds(120))
    answered: Answered = Field(Answered.yes, description="Whether the notes answer the question.")
    unanswered_part: str = Field(
        "",
        description="The part of the question that the notes do not answer, in a few words; else empty.",
        json_schema_extra=bounds(150),
    )
    sections: list[OutlinedSection] = Field(
        min_length=1,
        description="The sections, each different; the first answers the question.",
        json_schema_extra=bounds(items=7),
    )


class SectionRequest(WritingRequest):
    """One section of the outline, with the notes it uses, and the briefs of the other notes."""

    title: str
    outlined: list[OutlinedSection]  # all sections, in order
    position: int  # index of the section among them
    written: list[str]  # the sections already written with their headings, as Markdown that cites by source id
    words: int | None = None  # approximate length of the section
    sections: list[TemplateSection] = Field([], exclude_if=not_)  # sections of the template, from position 1 on

    @property
    def section(self) -> OutlinedSection:
        """The section to be written."""
        return self.outlined[self.position]

    @property
    def is_given(self) -> bool:
        """Whether the template has this section, which then stays even if empty."""
        return self.position > 0 and bool(self.sections)


def _as_share(stated: object) -> object:
    """Return a stated probability as a share: models write 0.85, 85 and "85 %"."""
    if isinstance(stated, str):
        try:
            stated = float(stated.strip().rstrip("%").rstrip())
        except ValueError:
            return None  # a word, such as "high", is no number to go by
    return stated / 100 if isinstance(stated, int | float) and 1 < stated <= 100 else stated


class ShortAnswer(Answer):
    """The answer of a run in answer mode, and how likely it is right."""

    answer: str = Field(description="The answer, with the ids of its sources.")
    confidence: Annotated[float | None, BeforeValidator(_as_share)] = Field(
        None, ge=0, le=1, description="Probability that the answer is right, 0 to 1."
    )


class ShortAnswerRequest(WritingRequest):
    """The question and all notes, for an answer of one sentence."""


def _one_line(heading: str) -> str:
    """Return the first line of a heading, no longer than `HEADING_CHARS`, without marks and citations."""
    first = without_citations(heading).strip().lstrip("#").strip().partition("\n")[0]
    return shorten(first, HEADING_CHARS, placeholder=" …").rstrip(" :")


def _title(request: OutlineRequest, title: str) -> str:
    """Return the report's title: the question if the model's title is a remark and not a title."""
    title = _one_line(title)
    steps = " ".join(step.title for step in request.plan.steps)
    about = {*query_terms(request.query), *query_terms(f"{request.plan.plan_title} {steps}")}
    fits = about & {*query_terms(title)} or request.plan.preferences.language  # another one has other words
    return title if fits and len(title.split()) <= TITLE_WORDS else _one_line(request.query)


def _normalize_outline(request: OutlineRequest, answer: OutlineAnswer) -> OutlineAnswer:
    """Shorten the title and headings, drop repetitions and ids that were never given, and follow the template."""
    known = {str(step.step_id) for step in request.plan.steps}
    seen: set[str] = set()
    sections: list[OutlinedSection] = []
    for section in answer.sections[:MAX_SECTIONS]:
        heading = _one_line(section.heading)
        if heading and heading.casefold() not in seen:
            seen.add(heading.casefold())
            steps = [i for i in section.step_ids if str(i) in known]
            sections.append(section.model_copy(update={"heading": heading, "step_ids": steps}))
    sections = _of_template(request, sections) if request.sections else sections
    return answer.model_copy(update={"title": _title(request, answer.title), "sections": sections})


def _of_template(request: OutlineRequest, sections: list[OutlinedSection]) -> list[OutlinedSection]:
    """Return the section that answers, then the template's sections, with the outline's descriptions of them."""
    by_heading = {section.heading.casefold(): section for section in sections}
    headings = [_one_line(each.title) or each.title for each in request.sections]
    planned = [by_heading.pop(heading.casefold(), None) for heading in headings]
    answer = OutlinedSection(heading="Answer", focus=f"Answer the question: {request.query}")
    return [
        next((section for section in sections if section.heading.casefold() in by_heading), answer),
        *(
            OutlinedSection(
                heading=heading,
                focus=f"What belongs here: {each.about}" + (f" {found.focus}" if found else ""),
                step_ids=found.step_ids if found else [],
            )
            for each, heading, found in zip(request.sections, headings, planned, strict=True)
        ),
    ]


def _check_outline(_request: OutlineRequest, answer: OutlineAnswer) -> list[Complaint]:
    return [] if answer.sections else [Complaint("The outline has no section with a heading.")]


def _check_section(_request: SectionRequest, answer: Text) -> list[Complaint]:
    return [] if answer.text.strip() else [Complaint("The section is empty.")]


def _draft(request: SectionRequest, text: str) -> Draft:
    text = cited_above_code(with_known_ids(text, request.known))
    return Draft(position=request.position, heading=request.section.heading, text=text)


def _normalize_answer(request: ShortAnswerRequest, answer: ShortAnswer) -> ShortAnswer:
    """Put the answer on one line and drop ids that were never given."""
    return answer.model_copy(update={"answer": with_known_ids(" ".join(answer.answer.split()), request.known)})


def _check_answer(_request: ShortAnswerRequest, answer: ShortAnswer) -> list[Complaint]:
    length = len(without_citations(answer.answer).strip())
    if not length:
        return [Complaint("The answer is empty.")]
    if length > ANSWER_CHARS:
        return [Complaint(f"The answer has {length} characters without its citations; {ANSWER_CHARS} are allowed.")]
    if not cited_ids(answer.answer):
        return [Complaint("The answer cites no source of the notes.")]
    return [] if answer.confidence is not None else [Complaint("`confidence` must be a number.", fatal=False)]


def _outline_schema(request: OutlineRequest) -> dict[str, Any]:
    schema = request.overview_schema(OutlineAnswer)
    if request.sections:
        number = len(request.sections) + 1
        schema["properties"]["sections"] |= {**bounds(items=number), "description": f"The {number} sections, in order."}
    return schema


OUTLINE = RoleSpec(
    "outline", Role.reporter, OutlineRequest, OutlineAnswer, _normalize_outline, _check_outline, schema=_outline_schema
)
SECTION = RoleSpec("section", Role.reporter, SectionRequest, Text, check=_check_section, draft=_draft)
ANSWER = RoleSpec("answer", Role.reporter, ShortAnswerRequest, ShortAnswer, _normalize_answer, _check_answer)
