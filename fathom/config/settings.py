"""The settings of a run.

`ResearchSettings` is the flow's parameter: Prefect draws its form in the UI from the descriptions, enums, bounds and
defaults below. `resolve` brings it together with the environment once, at the start of a run; nothing later asks the
environment again, so a replay sees the same values.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from fathom.config.caps import Budget, Price
from fathom.config.environment import Environment
from fathom.config.models import EXTRACTIVE, ModelCallSettings, Role, RoleModel
from fathom.models import Model
from fathom.text.urls import domain_of


class Profile(StrEnum):
    """Named sets of values; see `PROFILES`."""

    quick = "quick"
    standard = "standard"
    deep = "deep"


class Execution(StrEnum):
    """Whether the steps of a round run one after another or independent ones together."""

    sequential = "sequential"
    parallel = "parallel"


class Mode(StrEnum):
    """What a run writes."""

    report = "report"
    answer = "answer"


_SEQUENTIAL = {"execution": Execution.sequential}
_PARALLEL = {"execution": Execution.parallel}
PROFILES: Mapping[Profile, Mapping[str, Any]] = {
    Profile.quick: {"depth": 1, "breadth": 2, "max_steps": 3, "turns": 1, "passage_tokens": 0, **_SEQUENTIAL},
    Profile.standard: {"depth": 2, "breadth": 3, "max_steps": 5, "turns": 2, "passage_tokens": 0, **_SEQUENTIAL},
    Profile.deep: {"depth": 3, "breadth": 4, "max_steps": 7, "turns": 3, "passage_tokens": 1_500, **_PARALLEL},
}
"""`quick` is the core specification to the letter: one round, no reflection. `deep` runs steps side by side, and reads
the sources again for each section: elsewhere only the compressor sees them."""


class CompressionSettings(Model):
    """How a raw tool output becomes a note."""

    max_input_tokens: int = Field(
        10_000,
        ge=500,
        le=200_000,
        description="Tokens of raw output shown to a model, divided among `max_results` texts. Of a longer output the "
        "best passages are chosen.",
    )
    max_note_tokens: int = Field(
        1_500, ge=150, le=4_000, description="Tokens that a note may take in the context, summary and bullets together."
    )


class Unsupported(StrEnum):
    """What happens to a sentence that its sources do not support, even after the reporter was asked again."""

    remove = "remove"
    mark = "mark"


class ReportSettings(Model):
    """Length and checks of the report."""

    words: int | None = Field(
        None, ge=100, le=20_000, description="Approximate length in words. Empty: what the question asks for, or needs."
    )
    unsupported: Unsupported = Field(
        Unsupported.remove, description="Sentences that no source supports are removed, or marked as unsupported."
    )
    judge: bool = Field(
        False, description="The critic's model also judges each claim, in addition to the check of its words."
    )


def _domain(text: str) -> str:
    if not (domain := domain_of(text)) or " " in domain:
        raise ValueError(f"{text!r} is not a domain such as example.org or gov")
    return domain


Domain = Annotated[str, AfterValidator(_domain)]


class SourceRules(Model):
    """Which web sources are read and how far they are trusted. `example.org` covers its subdomains too."""

    allow: list[Domain] = Field(
        [], description="Read only pages of these domains. Empty: all domains.", examples=[["gov"]]
    )
    prefer: list[Domain] = Field([], description="Read pages of these domains first.", examples=[["who.int"]])
    block: list[Domain] = Field([], description="Never read pages of these domains, even if `allow` includes them.")
    scores: dict[Domain, Annotated[float, Field(ge=0, le=1)]] = Field(
        {},
        description="Authority of a domain, 0 to 1, instead of Fathom's own rating.",
        examples=[{"example.org": 0.9}],
    )
    min_quality: float = Field(
        0, ge=0, le=1, description="Sources with a lower overall score are not used; your own documents always are."
    )


class ResearchSettings(Model):
    """All settings of a run. An empty field takes the value of the profile or of the environment."""

    profile: Profile = Field(
        Profile.standard, description="quick: one round, no reflection. standard: two rounds. deep: parallel and wider."
    )
    mode: Mode = Field(
        Mode.report, description="report: sections with citations. answer: at most 140 characters with citations."
    )
    depth: int | None = Field(None, ge=1, le=5, description="Rounds of research, with a reflection between them.")
    breadth: int | None = Field(None, ge=1, le=10, description="Tool calls that a step may make per decision.")
    max_steps: int | None = Field(None, ge=1, le=10, description="Steps that a plan may have.")
    turns: int | None = Field(None, ge=1, le=10, description="Decisions per step; each may make tool calls.")
    passage_tokens: int | None = Field(
        None, ge=0, le=50_000, description="Tokens of source text shown to the writer of a section."
    )
    execution: Execution | None = Field(None, description="Run steps one after another, or independent steps together.")
    concurrency: int = Field(4, ge=1, le=32, description="Steps that may run at once when execution is parallel.")
    model: str | None = Field(
        None,
        description="litellm model for every role. Empty: FATHOM_MODEL, else `extractive`, which needs no model.",
    )
    fallback_models: list[str] = Field(
        default_factory=list, description="litellm models that every role tries in turn while `model` is unavailable."
    )
    role_models: dict[Role, RoleModel] = Field(
        default_factory=dict, description="A separate model for some roles: planner, researcher, compressor, ..."
    )
    model_calls: ModelCallSettings = ModelCallSettings()
    budget: Budget = Budget()
    prices: dict[str, Price] = Field(
        default_factory=dict, description="Prices by model name, where litellm knows none or yours differ."
    )
    docs: list[str] = Field(
        default_factory=list,
        description="Files or folders to research (txt, md, rst, html, pdf, docx, yaml, json, toml, csv). Empty, and "
        "no web search configured: the Python language reference.",
    )
    tools: list[str] | None = Field(
        None, description="Tools that the researcher may use. Empty: all configured tools.", examples=[["documents"]]
    )
    max_results: int = Field(5, ge=1, le=20, description="Pages or documents read per tool call.")
    fetch_allow_hosts: list[str] = Field(
        [], description="Private hosts that may be fetched: host:port, or 10.1.0.0/16."
    )
    redact: bool = Field(False, description="Remove e-mail addresses and phone, card and IBAN numbers.")
    fresh: bool = Field(False, description="Ask the web again instead of using cached answers.")
    embed_model: str | None = Field(
        None, description="sentence-transformers model (`embed` extra) to search documents by meaning as well as words."
    )
    artifacts: str | None = Field(
        None, description="Root of the artifact store, a folder or an fsspec address such as s3://bucket/prefix."
    )
    sufficiency: int = Field(8, ge=1, le=10, description="Score of the critic at which research ends.")
    max_context_tokens: int = Field(
        16_000, ge=1_000, le=500_000, description="Tokens of notes that a role may see; of more, the best are kept."
    )
    compression: CompressionSettings = CompressionSettings()
    report: ReportSettings = ReportSettings()
    sources: SourceRules = SourceRules()


class ResolvedSettings(ResearchSettings):
    """Settings with nothing left open: what a run works with and what its manifest records.

    `role_models` has a model for every role, each with its own fallbacks.
    """

    depth: int
    breadth: int
    max_steps: int
    turns: int
    passage_tokens: int
    execution: Execution
    model: str
    tools: list[str]
    artifacts: str

    @property
    def extractive(self) -> bool:
        """Whether the report's sentences are quotations."""
        return self.role_models[Role.reporter].model == EXTRACTIVE


def resolve(settings: ResearchSettings, environment: Environment, tools: list[str]) -> ResolvedSettings:
    """Fill what the settings leave open from the profile and the environment; `tools` are the configured ones."""
    chosen = {name: value for name, value in settings if value is not None}
    model = RoleModel(model=settings.model or environment.model or EXTRACTIVE, fallbacks=settings.fallback_models)
    return ResolvedSettings.model_validate(
        {
            **PROFILES[settings.profile],
            **chosen,
            "model": model.model,
            "role_models": {role: settings.role_models.get(role, model) for role in Role},
            "tools": tools,
            "fetch_allow_hosts": sorted({*settings.fetch_allow_hosts, *environment.fetch_allow}),
            "artifacts": settings.artifacts or environment.artifacts,
        }
    )
