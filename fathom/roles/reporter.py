"""The reporter makes an outline from the notes, then writes one section at a time."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fathom.models import Note, Plan
from fathom.roles.base import Answer, Complaint, Request, RoleSpec, Text
from fathom.settings import Role

__all__ = ["OUTLINE", "SECTION", "OutlineAnswer", "OutlineRequest", "OutlinedSection", "SectionRequest"]

MAX_SECTIONS = 10


class OutlineRequest(Request):
    """What the whole report can draw on."""

    query: str
    today: str
    plan: Plan
    notes: list[Note]
    open_questions: list[str] = []


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


class SectionRequest(Request):
    """One section of the outline, with the notes it draws on."""

    query: str
    today: str
    title: str
    headings: list[str]  # of all sections, in order
    section: OutlinedSection
    position: int  # index of the section in `headings`
    notes: list[Note]
    written: list[str]  # the earlier sections, as Markdown with source ids


def _mend_outline(request: OutlineRequest, answer: OutlineAnswer) -> OutlineAnswer:
    known = {str(step.step_id) for step in request.plan.steps}
    seen: set[str] = set()
    sections: list[OutlinedSection] = []
    for section in answer.sections[:MAX_SECTIONS]:
        heading = section.heading.strip().lstrip("#").strip()
        if heading and heading.casefold() not in seen:
            seen.add(heading.casefold())
            steps = [i for i in section.step_ids if str(i) in known]
            sections.append(section.model_copy(update={"heading": heading, "step_ids": steps}))
    return answer.model_copy(update={"sections": sections})


def _check_outline(_request: OutlineRequest, answer: OutlineAnswer) -> list[Complaint]:
    return [] if answer.sections else [Complaint("The outline has no section with a heading.")]


def _check_section(_request: SectionRequest, answer: Text) -> list[Complaint]:
    return [] if answer.text.strip() else [Complaint("The section is empty.")]


OUTLINE = RoleSpec(
    name="outline",
    role=Role.reporter,
    request=OutlineRequest,
    answer=OutlineAnswer,
    mend=_mend_outline,
    check=_check_outline,
)

SECTION = RoleSpec(name="section", role=Role.reporter, request=SectionRequest, answer=Text, check=_check_section)
