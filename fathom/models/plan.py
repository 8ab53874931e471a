"""The plan, which is also the checklist; the critic's view of the evidence; and a run's questions to people.

Optional fields of a plan are omitted from storage and requests when unset, so that requests without them stay the same
as before the fields existed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from enum import StrEnum
from operator import not_
from textwrap import shorten
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """Base of all models: frozen; unknown fields, infinite numbers and NaN are errors.

    Each is built at its first use: a run uses half of them, and most of those after its first question to a model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Received(BaseModel):
    """Base of what other services answer: what is not asked for may be there too. Each is built at its first use."""

    model_config = ConfigDict(defer_build=True)


REASON_CHARS = 300


class StepStatus(StrEnum):
    """The status of a step of the plan; also of one that is researched right now, which a plan does not say."""

    todo = "todo"
    in_progress = "in_progress"  # in a plan: answered in part, as the critic judged last
    done = "done"
    blocked = "blocked"  # researched, but nothing useful was found

    @property
    def words(self) -> str:
        """The outcome of a step in words."""
        return "answered in part" if self is StepStatus.in_progress else self.value


class Priority(StrEnum):
    """How much the answer depends on a step; low ones are skipped first when the budget runs short."""

    high = "high"
    medium = "medium"
    low = "low"


class Kind(StrEnum):
    """What sort of question is asked."""

    fact = "fact"
    comparison = "comparison"
    how_to = "how_to"
    survey = "survey"
    current_event = "current_event"
    decision = "decision"


class Width(StrEnum):
    """How much a question asks for."""

    narrow = "narrow"
    medium = "medium"
    broad = "broad"


class Depth(StrEnum):
    """How far the report goes into its subject."""

    brief = "brief"
    thorough = "thorough"


class Remark(Model):
    """A person's remark to a run during its research. `at` is an ISO 8601 time in UTC."""

    text: str
    author: str
    at: str

    @property
    def said(self) -> str:
        """Who said it, and when."""
        return f"{self.author} at {self.at[:16].replace('T', ' ')} UTC"


def _absent(value: object) -> bool:
    return value in (None, "", []) or (isinstance(value, Model) and not value.model_dump())


class Constraints(Model):
    """The limits that the question sets to the research; empty where it sets none."""

    timeframe: str = Field("", description="The period that the question is limited to.", exclude_if=_absent)
    scope: str = Field("", description="The places or part of the subject that it is limited to.", exclude_if=_absent)
    excludes: list[str] = Field([], description="What it says is to be left out.", exclude_if=_absent)

    @property
    def said(self) -> list[str]:
        """The limits in words."""
        named = (("period", self.timeframe), ("scope", self.scope), ("leaves out", ", ".join(self.excludes)))
        return [f"{name}: {said}" for name, said in named if said]


class ReportPreferences(Model):
    """What the question says about its report; empty where it says nothing."""

    reader: str = Field("", description="Who the report is for.", exclude_if=_absent)
    words: int | None = Field(None, ge=20, le=20_000, description="Its length in words.", exclude_if=_absent)
    form: str = Field("", description="Its form, such as a table, a memo or a list.", exclude_if=_absent)
    language: str = Field("", description="Its language, where it is not the question's.", exclude_if=_absent)
    depth: Depth | None = Field(
        None, description="brief: an overview is asked for; thorough: every detail is.", exclude_if=_absent
    )

    @property
    def said(self) -> list[str]:
        """The preferences in words."""
        length = f"about {self.words:,} words in all" if self.words else ""
        named = (("reader", self.reader), ("length", length), ("form", self.form), ("language", self.language))
        return [f"{name}: {said}" for name, said in (*named, ("depth", self.depth or "")) if said]


class PlanCost(Model):
    """What a run with the plan usually takes; `usd` is None if a price is unknown."""

    llm_calls: int
    tokens: int
    usd: float | None = None

    @property
    def said(self) -> str:
        """The cost in words."""
        usd = f", ${self.usd:,.2f}" if self.usd is not None else ""
        return f"{self.llm_calls:,} model calls, {self.tokens:,} tokens{usd}"


class PlanStep(Model):
    """One independently executable step of the plan."""

    step_id: str | int
    title: str
    description: str
    queries: list[str] = []
    tools: list[str] = []
    priority: Priority = Priority.medium
    depends_on: list[str | int] = []
    status: StepStatus = StepStatus.todo
    retries: str | int = Field("", exclude_if=_absent)  # id of the blocked step that this one tries again


class Clarification(Model):
    """A person's answer to a question about the query, or the assumption made because nobody answered."""

    question: str
    answer: str
    assumed: bool = False
    by: str = ""  # who said it; empty when it was assumed
    at: str = ""  # ISO 8601, UTC


class Plan(Model):
    """The plan of the research; also the checklist that the critic updates."""

    plan_title: str
    steps: list[PlanStep]
    kind: Kind | None = Field(None, exclude_if=_absent)  # the planner's judgement, as is the next field
    width: Width | None = Field(None, exclude_if=_absent)
    goals: list[str] = Field([], exclude_if=_absent)
    constraints: Constraints = Field(Constraints(), exclude_if=_absent)
    preferences: ReportPreferences = Field(ReportPreferences(), exclude_if=_absent)
    cost: PlanCost | None = Field(None, exclude_if=_absent)
    left_out: list[str] = Field([], exclude_if=_absent)  # titles of planned steps beyond the run's number of steps
    remarks: list[Remark] = Field([], exclude_if=_absent)
    clarifications: list[Clarification] = Field([], exclude_if=_absent)

    @property
    def terms(self) -> list[str]:
        """What holds for all steps and for the report, in words."""
        return [*(f"goal: {goal}" for goal in self.goals), *self.wanted]

    @property
    def wanted(self) -> list[str]:
        """What the writer of the report must know of the plan, in words."""
        return [*self.constraints.said, *self.preferences.said]

    @property
    def told(self) -> list[str]:
        """What people are told of the plan beside its steps, in words."""
        left_out = [f"left out: {title}" for title in self.left_out]
        cost = [f"usual cost: {self.cost.said}"] if self.cost and self.cost.llm_calls else []
        return [*self.terms, *left_out, *cost]

    def retry_of(self, step: PlanStep) -> PlanStep | None:
        """Return the step that tries a blocked one again, if there is one."""
        return next((s for s in self.steps if str(s.retries) == str(step.step_id)), None)

    def state_of(self, step: PlanStep, now: Collection[str] = ()) -> str:
        """Return the status of a step in words: `blocked, tried again below`; `now` holds ids of steps in progress."""
        if str(step.step_id) in now:
            return "in progress"
        return step.status.words + (", tried again below" if self.retry_of(step) else "")


class Gap(Model):
    """Something that the question needs and the notes lack."""

    description: str = Field(description="What is missing.")
    severity: Literal["critical", "important", "minor"] = "important"
    suggested_query: str = Field("", description="A specific search query that could fill it.")
    step_id: str | int = Field("", description="Id of the step that lacks it; empty if none does.", exclude_if=_absent)


class Refuted(NamedTuple):
    """A statement that other sources correct or, if nothing `settled` it, dispute; and what they say instead."""

    said: str
    source_ids: frozenset[str]
    instead: str
    by_source_ids: frozenset[str]
    settled: bool = True


class Contradiction(Model):
    """Two statements about the same thing that cannot both be true."""

    claim_a: str = Field(description="One statement, as its source has it.")
    claim_b: str = Field(description="The other, as its source has it.")
    source_ids: list[str] = Field([], description="Ids of the sources of both, without brackets.")
    other_source_ids: list[str] = Field([], description="Those of these ids that say `claim_b`.")
    resolution: str = Field(
        "",
        description="What the notes tell on it: a rule by which one of them holds, why both may hold, such as another "
        "year or method, or what speaks for one of them; else empty.",
        exclude_if=_absent,
    )
    holds: Literal["", "claim_a", "claim_b", "both"] = Field(
        "",
        description="The statement that holds, if the notes show that the other is wrong, such as one that was "
        "corrected or withdrawn; both, if they show that both may hold. Empty if nothing settles it.",
        exclude_if=_absent,
    )

    @property
    def settled(self) -> bool:
        """Whether the notes tell which statement holds, or that both may."""
        return bool(self.holds)

    @property
    def refuted(self) -> list[Refuted]:
        """The statement that does not hold; each if nothing settles it; none if it is not known who says which."""
        one, other = map(frozenset, self.sides(self.source_ids))
        if not (one and other):
            return []
        sides = {
            "claim_b": Refuted(self.claim_a, one, self.claim_b, other, self.settled),
            "claim_a": Refuted(self.claim_b, other, self.claim_a, one, self.settled),
        }
        return [refuted for holding, refuted in sides.items() if self.holds in ("", holding)]

    def sides(self, known: Container[str]) -> tuple[list[str], list[str]]:
        """Return the known ids of the sources of each statement; all are of the first if they were not told apart."""
        ids = [source_id for source_id in self.source_ids if source_id in known]
        other = [source_id for source_id in self.other_source_ids if source_id in ids]
        return [source_id for source_id in ids if source_id not in other], other


class Coverage(Model):
    """What the evidence speaks of, besides the topics: the statuses of the steps say which of those it covers."""

    perspectives: list[str] = Field([], description="Whose view or interest they give; none if there are no sides.")
    perspectives_missing: list[str] = Field([], description="Those that an expert would also hear.")
    period: str = Field("", description="The years they are about, such as 2019-2024; empty if that does not matter.")
    regions: list[str] = Field([], description="The places they are about; none if that does not matter.")


Recommendation = Literal["proceed", "iterate", "stop"]


class Reflection(Model):
    """The critic's view of the evidence after a round."""

    sufficiency_score: int = Field(ge=1, le=10)
    reasoning: str = ""
    statuses: dict[str, StepStatus] = {}
    coverage: Coverage = Coverage()
    gaps: list[Gap] = []
    contradictions: list[Contradiction] = []
    follow_up_steps: list[PlanStep] = []

    def recommendation(self, sufficiency: int) -> Recommendation:
        """Return what follows from it, where a score of `sufficiency` is enough: write, look again, or give up."""
        if self.sufficiency_score >= sufficiency:
            return "proceed"
        return "iterate" if self.follow_up_steps else "stop"


def insufficiency(score: int, wanted: int, reason: str, words: Callable[..., str] = str.format) -> str:
    """Return as a clause that the critic's score of the evidence, 1 to 10, is too low; nothing if it is not, or 0.

    `reason` is the critic's; at most `REASON_CHARS` characters of it are kept. `words` puts values into a phrase.
    """
    if not 0 < score < wanted:
        return ""
    why = shorten(reason, REASON_CHARS, placeholder=" …").rstrip(".")
    said = words("the evidence was judged {score} of 10, where {wanted} suffices", score=score, wanted=wanted)
    return words("{head}: {text}", head=said, text=why) if why else said


class Matter(StrEnum):
    """The subject of a question to a person."""

    question = "question"
    plan = "plan"
    report = "report"


class OpenQuestion(Model):
    """An ambiguity of the query, and the assumption that is made unless somebody says otherwise."""

    question: str
    default: str


class Asked(Model):
    """Something that a run asks a person. It follows from the run's records, so a replay asks the same."""

    matter: Matter
    query: str
    number: int = 1  # how many times the run has asked about this matter, including this one
    questions: list[OpenQuestion] = []  # of `question`
    plan: Plan | None = None  # of `plan`
    report: str = ""  # of `report`: its Markdown
    rewords: bool = True  # whether a model takes up what a person says in words
    why: str = Field("", exclude_if=_absent)  # what the person should know first
    optional: bool = Field(False, exclude_if=not_)  # no setting requires it: where nobody replies, silence accepts


class Reply(Model):
    """A person's reply; an empty one accepts everything as it is."""

    answers: list[str] = []  # one for each question
    plan: Plan | None = None  # the plan as the person edited it
    remark: str = ""  # what to change, in words
    stop: bool = False
    assumed: bool = False  # nobody could be asked, or nobody replied in time
    by: str = ""
    at: str = ""  # ISO 8601, UTC

    def clarifications(self, questions: list[OpenQuestion]) -> list[Clarification]:
        """Return the clarification of each question."""
        return [
            Clarification(question=asked.question, answer=answer, assumed=self.assumed, by=self.by, at=self.at)
            for asked, answer in zip(questions, self.answers, strict=True)
        ]
