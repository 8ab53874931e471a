"""The reporter makes an outline from the notes, then writes one section at a time; or it answers in a sentence."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fathom.config.models import Role
from fathom.models import Contradiction, Note, Plan, SourceText
from fathom.roles.base import Answer, Complaint, Request, RoleSpec, Text
from fathom.text.citations import cited_ids, with_known_ids, without_citations

MAX_SECTIONS = 10
ANSWER_CHARS = 140  # of an answer without its citations


class OutlineRequest(Request):
    """What the whole report can draw on."""

    query: str
    today: str
    plan: Plan
    notes: list[Note]
    open_questions: list[str] = []
    contradictions: list[Contradiction] = []
    authority: dict[str, float] = {}  # overall quality of the sources by id, 0 to 1
    words: int | None = None  # that the report should have, about


class OutlinedSection(Answer):
    """A section to be written."""

    heading: Annotated[str, Field(min_length=1, description="A heading that says what the section shows.")]
    focus: Annotated[str, Field(description="What the section must say, in one or two sentences.")]
    step_ids: Annotated[
        list[str | int], Field(description="Ids of the steps whose notes it draws on; empty: all notes.")
    ] = []


class OutlineAnswer(Answer):
    """The report's outline."""

    title: Annotated[str, Field(min_length=1, description="Title of the report.")]
    sections: Annotated[
        list[OutlinedSection],
        Field(min_length=1, description="Three to seven sections, each different; the first answers the question."),
    ]


class UnsupportedSentence(Request):
    """A sentence that the sources it cites do not carry, and what they say instead."""

    sentence: str
    why: list[str]
    evidence: list[str]  # the closest words of the sources, with their ids


class SectionRequest(Request):
    """One section of the outline, with the notes it draws on."""

    query: str
    today: str
    title: str
    headings: list[str]  # of all sections, in order
    section: OutlinedSection
    position: int  # index of the section in `headings`
    notes: list[Note]
    written: list[str]  # the sections already written, as Markdown with source ids
    passages: list[SourceText] = []  # of the notes' sources, read again for this section
    words: int | None = None  # that the section should have, about
    draft: str = ""  # what was written before, when it is to be mended
    unsupported: list[UnsupportedSentence] = []  # of the draft


class AnswerRequest(Request):
    """The question and all notes, for an answer of one sentence."""

    query: str
    today: str
    notes: list[Note]


def _normalize_outline(request: OutlineRequest, answer: OutlineAnswer) -> OutlineAnswer:
    known = {str(step.step_id) for step in request.plan.steps}
    seen: set[str] = set()
    sections: list[OutlinedSection] = []
    for section in answer.sections[:MAX_SECTIONS]:
        heading = without_citations(section.heading).strip().lstrip("#").strip()
        if heading and heading.casefold() not in seen:
            seen.add(heading.casefold())
            steps = [i for i in section.step_ids if str(i) in known]
            sections.append(section.model_copy(update={"heading": heading, "step_ids": steps}))
    title = without_citations(answer.title).strip() or answer.title
    return answer.model_copy(update={"title": title, "sections": sections})


def _check_outline(_request: OutlineRequest, answer: OutlineAnswer) -> list[Complaint]:
    return [] if answer.sections else [Complaint("The outline has no section with a heading.")]


def _check_section(_request: SectionRequest, answer: Text) -> list[Complaint]:
    return [] if answer.text.strip() else [Complaint("The section is empty.")]


def _normalize_answer(request: AnswerRequest, answer: Text) -> Text:
    """Put the answer on one line and drop ids that were never given."""
    known = {source_id for note in request.notes for source_id in note.source_ids}
    return Text(text=with_known_ids(" ".join(answer.text.split()), known))


def _check_answer(_request: AnswerRequest, answer: Text) -> list[Complaint]:
    length = len(without_citations(answer.text).strip())
    if not length:
        return [Complaint("The answer is empty.")]
    if length > ANSWER_CHARS:
        return [Complaint(f"The answer has {length} characters without its citations; at most {ANSWER_CHARS} may be.")]
    return [] if cited_ids(answer.text) else [Complaint("The answer cites no source of the notes.")]


OUTLINE = RoleSpec(
    name="outline",
    role=Role.reporter,
    request=OutlineRequest,
    answer=OutlineAnswer,
    normalize=_normalize_outline,
    check=_check_outline,
)

SECTION = RoleSpec(name="section", role=Role.reporter, request=SectionRequest, answer=Text, check=_check_section)

ANSWER = RoleSpec(
    name="answer",
    role=Role.reporter,
    request=AnswerRequest,
    answer=Text,
    normalize=_normalize_answer,
    check=_check_answer,
)
