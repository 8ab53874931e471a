"""Settings that belong together, each group a box of its own in the form of a run's settings."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from fathom.config.form import FormModel, Read, Setting
from fathom.text.urls import domain_of


class Clarify(StrEnum):
    """Whether a person is asked what the question leaves open."""

    never = "never"
    auto = "auto"  # where it is ambiguous
    always = "always"  # whatever the clarifier would like to know


class Approve(StrEnum):
    """What a person must accept before the run goes on."""

    never = "never"
    plan = "plan"
    report = "report"


class PeopleSettings(FormModel):
    """What is asked of people while the run waits: in the terminal, in Prefect's UI, or by `fathom answer`."""

    clarify: Annotated[Clarify, Setting("--clarify", "WHEN", page="people")] = Field(
        Clarify.never,
        description="When you are asked to clarify the question. never: not at all. auto: if it is ambiguous. always: "
        "whenever something could be clearer. In a terminal, `fathom research` sets auto.",
    )
    approve: Annotated[Approve, Setting("--approve", "WHAT", page="people")] = Field(
        Approve.never,
        description="What you must approve. never: nothing. plan: nothing is searched until you accept the plan. "
        "report: nothing is published until you accept the draft.",
    )
    wait_minutes: Annotated[float, Setting("--wait-minutes", "N", page="people", most=60)] = Field(
        5,
        ge=0,
        le=10_080,
        description="Minutes that the process waits for your answer. After that, a run of a deployment is "
        "suspended until it is answered; any other run goes on with the assumptions, or stops if you "
        "were to approve a plan or report.",
        examples=[0],
    )


NEVER = PeopleSettings(clarify=Clarify.never, approve=Approve.never)
"""For runs that nobody sits at, whatever a template says."""


_OLD_INPUT_TOKENS = 10_000


class CompressionSettings(FormModel):
    """How a raw tool output becomes a note."""

    max_text_tokens: int = Field(
        8_000,
        ge=500,
        le=100_000,
        description="Tokens up to which a text is shown to a model whole. A longer text is shown in parts of at "
        "most this size.",
        examples=[16_000],
    )
    max_input_tokens: int = Field(
        48_000,
        ge=500,
        le=200_000,
        description="Maximum tokens of raw output in one request to a model; fewer if the model's window is "
        "smaller. A longer output is spread over up to six requests. If it does not fit into six, the "
        "best passages are chosen.",
        examples=[20_000],
    )
    summary_tokens: Annotated[int, Setting("--summary-tokens", "N")] = Field(
        500,
        ge=100,
        le=1_000,
        description="Approximate length of a note in tokens, for each source that is useful for the step.",
        examples=[300],
    )

    @model_validator(mode="before")
    @classmethod
    def _as_now(cls, given: object) -> object:
        # Before 0.2 a note had one limit whatever its sources, and a request another default: a run that is stored so
        # can still be followed.
        if not isinstance(given, Mapping) or not isinstance(most := given.get("max_note_tokens"), int):
            return given
        kept = {name: value for name, value in given.items() if name != "max_note_tokens"}
        if kept.get("max_input_tokens") == _OLD_INPUT_TOKENS:
            del kept["max_input_tokens"]
        return {"summary_tokens": max(100, min(most // 3, 1_000)), **kept}


class Unsupported(StrEnum):
    """What happens to a sentence that its sources do not support, even after the reporter was asked again."""

    remove = "remove"
    mark = "mark"


class Judging(StrEnum):
    """Whether a model judges the claims of a report."""

    auto = "auto"  # where a role of the run has a model
    always = "always"
    never = "never"

    @classmethod
    def _missing_(cls, value: object) -> Judging | None:
        # Before 0.3 it was a switch, off unless somebody set it: a run that is stored so can still be asked.
        return (cls.always if value else cls.auto) if isinstance(value, bool) else None


class ReportSettings(FormModel):
    """Length and checks of the report."""

    words: Annotated[int | None, Setting(empty="the length that the question asks for or needs")] = Field(
        None,
        ge=100,
        le=20_000,
        description="Approximate length of the report in words.",
        examples=[500],
    )
    judge: Annotated[Judging, Setting(page="evidence")] = Field(
        Judging.auto,
        description="Whether a model judges each claim by its sources. auto: if the run has a model. always: a run "
        "without a model is refused. never: claims are checked only by comparing words.",
    )
    unsupported: Annotated[Unsupported, Setting(page="evidence")] = Field(
        Unsupported.mark,
        description="What happens to a sentence that the judge still objects to after the writer has corrected "
        "it. mark: it is kept and marked. remove: it is removed.",
    )


def _domain(text: str) -> str:
    if not (domain := domain_of(text)) or " " in domain:
        raise ValueError(f"{text!r} is not a domain such as example.org or gov")
    return domain


Domain = Annotated[str, AfterValidator(_domain)]


class SourceRules(FormModel):
    """Which web sources are read and how far they are trusted. `example.org` covers its subdomains too."""

    allow: Annotated[list[Domain], Setting(empty="all domains", page="sources", tools=Read.always)] = Field(
        [], description="Read only pages of these domains.", examples=[["gov"]]
    )
    prefer: Annotated[list[Domain], Setting(page="sources", tools=Read.always)] = Field(
        [], description="Read pages of these domains first.", examples=[["who.int"]]
    )
    block: Annotated[list[Domain], Setting(page="sources", tools=Read.always)] = Field(
        [],
        description="Never read pages of these domains, even if `allow` includes them.",
        examples=[["example.com"]],
    )
    scores: Annotated[dict[Domain, Annotated[float, Field(ge=0, le=1)]], Setting(page="sources", tools=Read.always)] = (
        Field(
            {},
            description="Authority of a domain, from 0 to 1, that replaces Fathom's own rating.",
            examples=[{"example.org": 0.9}],
        )
    )
    min_quality: Annotated[float, Setting(page="sources")] = Field(
        0,
        ge=0,
        le=1,
        description="Minimum overall score of a source; sources below it are not used. Your own documents always are.",
        examples=[0.4],
    )
