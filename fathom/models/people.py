"""What a run asks of people, and what they reply."""

from __future__ import annotations

from enum import StrEnum

from fathom.models.base import Model
from fathom.models.plan import Clarification, Plan


class Matter(StrEnum):
    """What a question to a person is about."""

    question = "question"
    plan = "plan"
    report = "report"


class OpenQuestion(Model):
    """What the query leaves open, and what is assumed unless somebody says otherwise."""

    question: str
    default: str


class Asked(Model):
    """Something that a run asks a person. It follows from the run's records, so a replay asks the same."""

    matter: Matter
    query: str
    number: int = 1  # of the times that the run asks about this matter
    questions: list[OpenQuestion] = []  # of `question`
    plan: Plan | None = None  # of `plan`
    report: str = ""  # of `report`: its Markdown
    rewords: bool = True  # whether a model takes up what a person says in words


class Reply(Model):
    """What a person replied; without anything else, that all is well as it is."""

    answers: list[str] = []  # one for each question
    plan: Plan | None = None  # the plan as the person edited it
    remark: str = ""  # what to change, in words
    stop: bool = False
    assumed: bool = False  # nobody could be asked, or nobody replied in time
    by: str = ""
    at: str = ""  # ISO 8601, UTC

    def clarifications(self, questions: list[OpenQuestion]) -> list[Clarification]:
        """Return what is now known of each question."""
        return [
            Clarification(question=asked.question, answer=answer, assumed=self.assumed, by=self.by, at=self.at)
            for asked, answer in zip(questions, self.answers, strict=True)
        ]
