"""The clarifier finds the ambiguities of a query before the planning: the questions to ask, and the assumptions."""

from __future__ import annotations

from operator import not_

from pydantic import Field

from fathom.config.groups import Role
from fathom.models import Document, OpenQuestion
from fathom.roles.base import Answer, Complaint, Request, RoleSpec, bounds

MOST_QUESTIONS = 3


class ClarifyRequest(Request):
    """A query, and the tools and documents for its research."""

    query: str
    today: str  # ISO date
    language: str = Field("", exclude_if=not_)  # the tag of the report's language; empty: English
    tools: dict[str, str]  # name -> description
    documents: list[Document] = []  # the local documents that look closest to the query, by name only


class AskedBack(Answer):
    """One question to the person who asked."""

    question: str = Field(description="The question, in one sentence.", json_schema_extra=bounds(200))
    default: str = Field(
        description="What to assume if nobody answers, in a few words: the most likely reading.",
        json_schema_extra=bounds(200),
    )


class ClarifyAnswer(Answer):
    """What the query leaves open."""

    ambiguous: bool = Field(
        description="Whether different readings of the query would need different research. False for most queries."
    )
    questions: list[AskedBack] = Field(
        [], description="What to ask, the most important first.", json_schema_extra=bounds(items=MOST_QUESTIONS)
    )

    @property
    def open_questions(self) -> list[OpenQuestion]:
        """The questions as the pipeline keeps them."""
        return [OpenQuestion(question=asked.question, default=asked.default) for asked in self.questions]


def _normalize(_request: ClarifyRequest, answer: ClarifyAnswer) -> ClarifyAnswer:
    """Put questions on one line, drop empty and repeated ones, and keep at most three; without any, all is clear."""
    lines = {" ".join(asked.question.split()): " ".join(asked.default.split()) for asked in reversed(answer.questions)}
    kept = [AskedBack(question=q, default=d) for q, d in reversed(lines.items()) if q][:MOST_QUESTIONS]
    return answer.model_copy(update={"questions": kept, "ambiguous": answer.ambiguous and bool(kept)})


def _check(_request: ClarifyRequest, answer: ClarifyAnswer) -> list[Complaint]:
    without = [asked.question for asked in answer.questions if not asked.default]
    return [Complaint(f"This question has no default: {question}") for question in without]


CLARIFIER = RoleSpec("clarifier", Role.clarifier, ClarifyRequest, ClarifyAnswer, _normalize, _check)
