"""Groups of settings: profiles, caps, models, and groups that have a box of their own in a form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from fathom.config.form import FormModel, ReadByTools, Setting
from fathom.network import Sender
from fathom.text.urls import domain_of


class Clarify(StrEnum):
    """Whether a person is asked what the question leaves open."""

    never = "never"
    auto = "auto"  # where it is ambiguous
    always = "always"  # whenever the clarifier has a question


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
    clarified: Annotated[dict[str, str], Setting(page="people")] = Field(
        {},
        max_length=10,
        description="Questions about your question that you have answered already, each with your answer. With any, "
        "no others are asked.",
        examples=[{"Which language?": "Python"}],
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

    @property
    def unattended(self) -> PeopleSettings:
        """The same for a run that nobody sits at, whatever a template says."""
        return self.model_copy(update={"clarify": Clarify.never, "approve": Approve.never})


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


class AccessScope(StrEnum):
    """What a run may read, and what may leave this machine."""

    documents = "documents"
    web = "web"
    public_sources = "public-sources"
    private = "private"

    @property
    def about(self) -> str:
        """What it means, in words."""
        return _SCOPES[self]

    @property
    def kept_in(self) -> list[Sender]:
        """The senders that may reach nothing beyond this machine and its private network."""
        if self is AccessScope.private:
            return ["tools", "models", "traces"]
        return ["tools"] if self is AccessScope.documents else []

    def admits(self, other: AccessScope | None) -> bool:
        """Whether another scope is this one or a narrower one."""
        return other is self or (self is AccessScope.documents and other is AccessScope.private)


_SCOPES = {
    AccessScope.documents: "only your documents",
    AccessScope.web: "only web search and pages",
    AccessScope.public_sources: "only the scholarly and factual services",
    AccessScope.private: "only your documents, and nothing leaves this machine and its private network",
}


class Judging(StrEnum):
    """Whether a model judges the claims of a report."""

    auto = "auto"  # where a role of the run has a model, but for the profile `quick`
    always = "always"
    never = "never"

    @classmethod
    def _missing_(cls, value: object) -> Judging | None:
        # Before 0.3 it was a switch, off unless somebody set it: a run that is stored so can still be asked.
        return (cls.always if value else cls.auto) if isinstance(value, bool) else None


class ReportSettings(FormModel):
    """Length and checks of the report."""

    words: Annotated[int | None, Setting(empty="the length that the question asks for or needs")] = Field(
        None, ge=100, le=20_000, description="Approximate length of the report in words.", examples=[500]
    )
    judge: Annotated[Judging, Setting(page="evidence")] = Field(
        Judging.auto,
        description="Whether a model judges each claim by its sources. auto: if the run has a model and its profile "
        "is not quick, in which only the compressor reads sources. always: a run without a model is refused. never: "
        "claims are checked only by comparing words.",
    )
    check_links: Annotated[bool, Setting(page="fetching")] = Field(
        True, description="Whether the addresses of cited web pages are requested once more, to say which still work."
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


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError(f"{text!r} is not a date such as 2026-11-30") from None


def _region(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z]{2}", text):
        raise ValueError(f"{text!r} is not a country code of two letters, such as de")
    return text.lower()


Day = Annotated[str, AfterValidator(_day)]


class WebSettings(FormModel):
    """What every search of the web is limited to, as far as its vendor can; see docs/searching.md for each."""

    suffixes: Annotated[list[str], Setting(page="searching", tools=ReadByTools.changed)] = Field(
        [], max_length=5, description="Words added to every query of the web.", examples=[["clinical trial"]]
    )
    since: Annotated[Day | None, Setting("--since", "DATE", page="searching", tools=ReadByTools.changed)] = Field(
        None, description="Find only pages published on this day or later.", examples=["2024-01-01"]
    )
    until: Annotated[Day | None, Setting("--until", "DATE", page="searching", tools=ReadByTools.changed)] = Field(
        None, description="Find only pages published on this day or before.", examples=["2025-12-31"]
    )
    region: Annotated[
        Annotated[str, AfterValidator(_region)] | None, Setting(page="searching", tools=ReadByTools.changed)
    ] = Field(None, description="Search as from this country, by its ISO 3166 code.", examples=["de"])
    safe: Annotated[bool, Setting(page="searching", tools=ReadByTools.changed)] = Field(
        False, description="Leave out pages for adults."
    )


class SourceRules(FormModel):
    """Which web sources are read and how far they are trusted. `example.org` covers its subdomains too."""

    allow: Annotated[list[Domain], Setting(empty="all domains", page="sources", tools=ReadByTools.always)] = Field(
        [], description="Read only pages of these domains.", examples=[["gov"]]
    )
    prefer: Annotated[list[Domain], Setting(page="sources", tools=ReadByTools.always)] = Field(
        [], description="Read pages of these domains first.", examples=[["who.int"]]
    )
    block: Annotated[list[Domain], Setting(page="sources", tools=ReadByTools.always)] = Field(
        [], description="Never read pages of these domains, even if `allow` includes them.", examples=[["example.com"]]
    )
    scores: Annotated[
        dict[Domain, Annotated[float, Field(ge=0, le=1)]], Setting(page="sources", tools=ReadByTools.always)
    ] = Field(
        {},
        description="Authority of a domain, from 0 to 1, that replaces Fathom's own rating.",
        examples=[{"example.org": 0.9}],
    )
    min_quality: Annotated[float, Setting(page="sources")] = Field(
        0,
        ge=0,
        le=1,
        description="Minimum overall score of a source; sources below it are not used. Your own documents always are.",
        examples=[0.4],
    )
    require_corroboration: Annotated[bool, Setting(page="sources")] = Field(
        False, description="Mark each claim for which no second, independent and credible source was found."
    )
    peer_reviewed: Annotated[bool, Setting(page="sources")] = Field(
        False,
        description="Use only works of publishers and catalogues of peer-reviewed research, without preprints. The "
        "report names the others. Your own documents always are used.",
    )


class Profile(StrEnum):
    """Named sets of values; see `PROFILES`."""

    quick = "quick"
    standard = "standard"
    deep = "deep"


class Effort(StrEnum):
    """Whether the kind of the question decides how much of the profile a run uses."""

    auto = "auto"
    fixed = "fixed"


class Execution(StrEnum):
    """Whether steps and calls run one after another, or independent steps and the calls of a step together."""

    sequential = "sequential"
    parallel = "parallel"


_SEQUENTIAL = {"execution": Execution.sequential}
_PARALLEL = {"execution": Execution.parallel}
PROFILES: Mapping[Profile, Mapping[str, Any]] = {
    Profile.quick: {"depth": 1, "breadth": 2, "max_steps": 3, "turns": 1, "passage_tokens": 0, **_SEQUENTIAL},
    Profile.standard: {"depth": 2, "breadth": 3, "max_steps": 5, "turns": 2, "passage_tokens": 0, **_PARALLEL},
    Profile.deep: {"depth": 3, "breadth": 4, "max_steps": 7, "turns": 3, "passage_tokens": 1_500, **_PARALLEL},
}
"""`quick` is the core specification to the letter: one round, no reflection, one step and one call after another, and
no text of a source for any role but the compressor, so no judge. `deep` reads the sources again for each section."""
UNLESS_BROAD = 2
"""The most rounds for a question that is not broad, unless another number is set or all of the profile is wanted."""


def _about(profile: Profile) -> str:
    depth = PROFILES[profile]["depth"]
    if depth == 1:
        return "One round of searching. For a fact, or a first look."
    if depth <= UNLESS_BROAD:
        return f"At most {depth} rounds, with a check of what is missing in between."
    wider = f"At most {depth} rounds, with more steps and searches in each"
    return f"{wider}; at most {UNLESS_BROAD} unless the question is broad."


ABOUT: Mapping[Profile, str] = {profile: _about(profile) for profile in Profile}
"""What each is for, as a person who chooses one reads it."""


DEFAULT_USD = 5.0
"""Default cap of a run in US dollars, used when the price of every model is known."""
DEFAULT_TOKENS = 3_000_000
DEFAULT_CALLS = 500


class Budget(FormModel):
    """The caps of a run, over all of its attempts; none is ever exceeded. They change no answer."""

    max_usd: Annotated[
        float | None,
        Setting(
            "--max-usd",
            "USD",
            empty=f"{DEFAULT_USD:g} if the price of every model is known, else no cap",
            page="budget",
        ),
    ] = Field(None, ge=0, description="Maximum cost in US dollars.", examples=[0.5])
    max_tokens: Annotated[int, Setting("--max-tokens", "N", page="budget", most=DEFAULT_TOKENS)] = Field(
        DEFAULT_TOKENS, ge=1, description="Maximum tokens sent to and received from models.", examples=[500_000]
    )
    max_calls: Annotated[int, Setting("--max-calls", "N", page="budget", most=DEFAULT_CALLS)] = Field(
        DEFAULT_CALLS, ge=1, description="Maximum requests to models, including retries.", examples=[100]
    )
    max_seconds: Annotated[float | None, Setting("--max-seconds", "S", empty="no cap", page="budget")] = Field(
        None, gt=0, description="Maximum seconds of work, not counting pauses before a resume.", examples=[600]
    )
    research_share: Annotated[float, Setting(page="budget")] = Field(
        0.85,
        gt=0,
        le=1,
        description="Share of every cap that research may spend; the rest is kept for the report.",
        examples=[0.8],
    )


class BatchBudget(FormModel):
    """The caps over all questions of a batch; each question reserves a share of them before it is asked."""

    max_usd: Annotated[float | None, Setting(empty="no cap")] = Field(
        None, gt=0, description="Maximum cost in US dollars.", examples=[20]
    )
    max_tokens: Annotated[int | None, Setting(empty="no cap")] = Field(
        None, ge=1, description="Maximum tokens sent to and received from models.", examples=[10_000_000]
    )
    max_calls: Annotated[int | None, Setting(empty="no cap")] = Field(
        None, ge=1, description="Maximum requests to models.", examples=[2_000]
    )


class Price(FormModel):
    """What a model costs, in US dollars per million tokens."""

    input: float = Field(ge=0, description="US dollars per million tokens sent.", examples=[0.5])
    output: float = Field(ge=0, description="US dollars per million tokens received.", examples=[2])
    cached: Annotated[float | None, Setting(empty="same as `input`")] = Field(
        None,
        ge=0,
        description="US dollars per million sent tokens that the provider reads from its cache.",
        examples=[0.05],
        exclude_if=lambda value: value is None,
    )

    @classmethod
    def from_text(cls, text: str) -> object:
        """Take `0.25,2` and `0.25,2,0.03`, too: input, output and perhaps cached."""
        amounts = text.split(",")
        try:
            prices = [float(amount) for amount in amounts if 0 <= float(amount) < float("inf")]
        except ValueError:
            prices = []
        if len(prices) != len(amounts) or not 2 <= len(prices) <= len(cls.model_fields):
            raise ValueError("it must be INPUT,OUTPUT or INPUT,OUTPUT,CACHED in dollars per million tokens: 0.25,2")
        return dict(zip(cls.model_fields, prices, strict=False))


EXTRACTIVE = "extractive"
"""Name of the model-free backend, usable wherever a model name is."""


class Role(StrEnum):
    """The roles that a model can take."""

    clarifier = "clarifier"
    planner = "planner"
    researcher = "researcher"
    compressor = "compressor"
    critic = "critic"
    reporter = "reporter"
    judge = "judge"


ROLES = tuple(role.value for role in Role)


class StructuredOutput(StrEnum):
    """How a model is made to answer in JSON."""

    json_schema = "json_schema"  # the provider enforces the schema
    tool = "tool"  # the model must call a tool whose input has the schema
    json_object = "json_object"  # the provider promises JSON; the schema is part of the prompt
    prompt = "prompt"  # only the prompt asks for it


class ModelCallSettings(FormModel):
    """Limits and waits of model calls. They change no answer."""

    at_once: Annotated[int, Setting("--model-at-once", "N", page="models", most=8)] = Field(
        8,
        ge=1,
        le=64,
        description="Maximum number of model calls at the same time, over all roles and steps; 1 for a small server.",
        examples=[1],
    )
    seconds: Annotated[float, Setting("--model-seconds", "S", page="models", most=600)] = Field(
        120, gt=0, le=3_600, description="Seconds without a token after which an attempt is abandoned.", examples=[300]
    )
    retries: int = Field(
        4, ge=0, le=10, description="Attempts after the first one, if the failure may be temporary.", examples=[2]
    )
    backoff_seconds: float = Field(
        2, ge=0, le=60, description="Seconds before the second attempt; doubled before each one after it.", examples=[5]
    )
    per_minute: Annotated[int | None, Setting(empty="no limit", page="models")] = Field(
        None, ge=1, description="Maximum requests per minute to one service, evenly spaced.", examples=[60]
    )


class RoleModel(FormModel):
    """The model of one role and how it is called."""

    model: str = Field(
        description="A litellm model name, or `extractive`.", examples=["openai/gpt-5-mini"], min_length=1
    )
    fallbacks: list[str] = Field(
        default_factory=list,
        description="litellm models to try in turn while this one is unavailable.",
        examples=[["openai/gpt-5-nano"]],
    )
    temperature: Annotated[float | None, Setting(empty="the provider's default")] = Field(
        None, ge=0, le=2, description="Sampling temperature.", examples=[0.2]
    )
    max_tokens: int = Field(4_096, ge=64, le=64_000, description="Maximum tokens in an answer.", examples=[8_192])
    thinking_tokens: int = Field(
        16_000,
        ge=0,
        le=200_000,
        description="Maximum tokens that a reasoning model may use for thinking, in addition to `max_tokens`.",
        examples=[32_000],
    )
    window: Annotated[int | None, Setting(empty="as the server or litellm's table says")] = Field(
        None, ge=1_024, description="Maximum tokens of prompt and answer together.", examples=[32_768]
    )
    structured_output: Annotated[StructuredOutput | None, Setting(empty="as the provider supports it")] = Field(
        None, description="How the model is asked for JSON."
    )

    @classmethod
    def from_text(cls, text: str) -> object:
        """Take the name of a model, too."""
        return {"model": text.strip()}
