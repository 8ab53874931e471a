"""The settings of a run.

`ResearchSettings` is the flow's parameter: Prefect draws its form in the UI from the descriptions, enums, bounds and
defaults below. `resolve` brings it together with the environment once, at the start of a run; nothing later asks the
environment again, so a replay sees the same values.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fathom.config.caps import Budget, Price
from fathom.config.environment import Environment
from fathom.config.groups import CompressionSettings, Judging, PeopleSettings, ReportSettings, SourceRules
from fathom.config.models import EXTRACTIVE, ModelCallSettings, Role, RoleModel
from fathom.config.profiles import PROFILES, Effort, Execution, Profile
from fathom.config.templated import TemplatedSettings
from fathom.errors import InvalidInput


class SearchMode(StrEnum):
    """Whether the next search vendor is asked when one fails or finds nothing, or all of them together."""

    first = "first"
    all = "all"


class Mode(StrEnum):
    """What a run writes."""

    report = "report"
    answer = "answer"


class Render(StrEnum):
    """Whether a page whose text is made by script is opened in a browser."""

    auto = "auto"
    never = "never"


class ResearchSettings(TemplatedSettings):
    """All settings of a run. An empty field takes the value of the template, the profile or the environment.

    They stand in the order of Prefect's form, which their titles divide: the template, how deep, what to read, which
    model, the budget, the report, what to ask people, and last what few need.
    """

    profile: Profile = Field(
        Profile.standard,
        title="How deep: profile",
        description="quick: one round, no reflection. standard: two rounds. deep: parallel and wider.",
    )
    effort: Effort = Field(
        Effort.auto,
        title="How deep: effort",
        description="auto: less for a simple question, the whole profile for a broad one. fixed: always the whole.",
    )
    depth: int | None = Field(
        None,
        title="How deep: rounds",
        ge=1,
        le=5,
        description="Rounds of research, with a reflection between them. Empty: as the profile says.",
        examples=[2],
    )

    docs: list[str] = Field(
        default_factory=list,
        title="What to read: documents",
        description="Files or folders to research (txt, md, rst, html, pdf, docx, yaml, json, toml, csv). Empty, and "
        "no web search configured: the Python language reference.",
        examples=[["/data/notes", "/data/contract.pdf"]],
    )
    corpora: list[str] | None = Field(
        None,
        title="What to read: uploaded corpora",
        description="Names of corpora that were uploaded to the artifact store, to research beside the documents.",
        examples=[["handbook"]],
        max_length=20,
        exclude_if=lambda corpora: corpora is None,  # it came later: runs without it keep their calls
    )
    tools: list[str] | None = Field(
        None,
        title="What to read: tools",
        description="Tools or groups of tools that the researcher may use. `default`, and an empty field: all that are "
        "configured and in no group.",
        examples=[["default", "scholarly"]],
    )
    search: list[str] | None = Field(
        None,
        title="What to read: search vendors",
        description="Vendors that web_search asks, in this order. Empty: all configured ones.",
        examples=[["brave", "tavily"]],
    )
    search_mode: SearchMode = Field(
        SearchMode.first,
        title="What to read: way of searching",
        description="first: the next vendor is asked when one fails or finds nothing. all: all are asked together.",
    )
    max_results: int = Field(
        5,
        title="What to read: results",
        ge=1,
        le=20,
        description="Pages or documents read per tool call.",
        examples=[10],
    )
    sources: SourceRules = Field(SourceRules(), title="What to read: web sources")
    fresh: bool = Field(
        False, title="What to read: fresh pages", description="Ask the web again instead of using cached answers."
    )

    model: str | None = Field(
        None,
        title="Model: name",
        description="litellm model for every role. Empty: FATHOM_MODEL, else `extractive`, which needs no model.",
        examples=["openai/gpt-5-mini"],
    )
    fallback_models: list[str] = Field(
        default_factory=list,
        title="Model: fallbacks",
        description="litellm models that every role tries in turn while `model` is unavailable.",
        examples=[["anthropic/claude-haiku-4-5"]],
    )
    role_models: dict[Role, RoleModel] = Field(
        default_factory=dict,
        title="Model: by role",
        description="A separate model for some roles: clarifier, planner, researcher, compressor, critic, reporter, "
        "judge. The judge takes the reporter's, or another role's, if it has none of its own.",
        examples=[{"reporter": {"model": "openai/gpt-5"}}],
    )

    budget: Budget = Field(Budget(), title="Budget: caps")
    prices: dict[str, Price] = Field(
        default_factory=dict,
        title="Budget: prices",
        description="US dollars per million tokens by model name, where litellm knows none or yours differ.",
        examples=[{"openai/my-model": {"input": 0.5, "output": 2}}],
    )
    search_prices: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict,
        title="Budget: prices of searches",
        description="US dollars of a search by vendor, where yours differ. 0: its searches and pages cost nothing.",
        examples=[{"brave": 0.003}],
    )

    mode: Mode = Field(
        Mode.report,
        title="Report: form",
        description="report: sections with citations. answer: at most 140 characters with citations.",
    )
    report: ReportSettings = Field(ReportSettings(), title="Report: length and checks")

    people: PeopleSettings = Field(PeopleSettings(), title="People: what to ask them")

    breadth: int | None = Field(
        None,
        title="Advanced: tool calls",
        ge=1,
        le=10,
        description="Tool calls that a step may make per decision. Empty: as the profile says.",
        examples=[3],
    )
    max_steps: int | None = Field(
        None,
        title="Advanced: steps",
        ge=1,
        le=10,
        description="Steps that a plan may have. Empty: as the profile says.",
        examples=[5],
    )
    turns: int | None = Field(
        None,
        title="Advanced: decisions",
        ge=1,
        le=10,
        description="Decisions per step; each may make tool calls. Empty: as the profile says.",
        examples=[2],
    )
    execution: Execution | None = Field(
        None,
        title="Advanced: execution",
        description="Run steps one after another, or independent steps together. Empty: as the profile says.",
    )
    concurrency: int = Field(
        8,
        title="Advanced: steps at once",
        ge=1,
        le=32,
        description="Steps that may run at once when execution is parallel.",
        examples=[8],
    )
    sufficiency: int = Field(
        8,
        title="Advanced: sufficiency",
        ge=1,
        le=10,
        description="Score of the critic at which research ends.",
        examples=[9],
    )
    passage_tokens: int | None = Field(
        None,
        title="Advanced: passages",
        ge=0,
        le=50_000,
        description="Tokens of source text shown to the writer of a section. Empty: as the profile says.",
        examples=[1_500],
    )
    max_context_tokens: int = Field(
        16_000,
        title="Advanced: notes",
        ge=1_000,
        le=500_000,
        description="Tokens of notes that a role may see; of more, the best are kept.",
        examples=[32_000],
    )
    compression: CompressionSettings = Field(CompressionSettings(), title="Advanced: compression")
    model_calls: ModelCallSettings = Field(ModelCallSettings(), title="Advanced: model calls")
    fetch_allow_hosts: list[str] = Field(
        [],
        title="Advanced: private hosts",
        description="Private hosts that may be fetched.",
        examples=[["wiki.local:8080", "10.1.0.0/16"]],
    )
    render: Render = Field(
        Render.auto,
        title="Advanced: browser",
        description="auto: pages that have no text without their scripts are opened in a browser, if the extra "
        "`browser` and Chromium are there. never: no browser is started.",
    )
    redact: bool = Field(
        False, title="Advanced: redaction", description="Remove e-mail addresses and phone, card and IBAN numbers."
    )
    embed_model: str | None = Field(
        None,
        title="Advanced: embeddings",
        description="sentence-transformers model (`embed` extra) to search documents by meaning as well as words.",
        examples=["all-MiniLM-L6-v2"],
    )
    artifacts: str | None = Field(
        None,
        title="Advanced: artifacts",
        description="Root of the artifact store, a folder or an fsspec address. Empty: FATHOM_ARTIFACTS.",
        examples=["s3://bucket/prefix"],
    )


class ResolvedSettings(ResearchSettings):
    """Settings with nothing left open: what a run works with and what its manifest records.

    `role_models` has a model for every role, each with its own fallbacks; what a template sets is in its place.
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

    @property
    def judges(self) -> bool:
        """Whether a model judges the claims of the report."""
        return self.report.judge is not Judging.never and self.role_models[Role.judge].model != EXTRACTIVE


def _role_models(chosen: Mapping[Role, RoleModel], model: RoleModel) -> dict[Role, RoleModel]:
    """Return a model for every role; the judge's is the writer's, or else another role's."""
    found = {role: chosen.get(role, model) for role in Role}
    if Role.judge not in chosen:
        others = (found[role] for role in (Role.reporter, Role.critic, *Role) if found[role].model != EXTRACTIVE)
        found[Role.judge] = next(others, model)
    return found


def resolve(settings: ResearchSettings, environment: Environment, tools: list[str]) -> ResolvedSettings:
    """Fill what the settings leave open from the profile and the environment; `tools` are the configured ones.

    Raises:
        InvalidInput: a model must judge the claims, and the run has none.
    """
    chosen = {name: value for name, value in settings if value is not None}
    model = RoleModel(model=settings.model or environment.model or EXTRACTIVE, fallbacks=settings.fallback_models)
    resolved = ResolvedSettings.model_validate(
        {
            **PROFILES[settings.profile],
            **chosen,
            "template": None,
            "model": model.model,
            "role_models": _role_models(settings.role_models, model),
            "tools": tools,
            "fetch_allow_hosts": sorted({*settings.fetch_allow_hosts, *environment.fetch_allow}),
            "artifacts": settings.artifacts or environment.artifacts,
        }
    )
    if resolved.report.judge is Judging.always and not resolved.judges:
        message = "`report.judge` is always, but no role of the run has a model."
        raise InvalidInput(message, next_step="set --model or --role-model judge=..., or report.judge to auto")
    return resolved
