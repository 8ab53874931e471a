"""The settings of a run.

`ResearchSettings` is the flow's parameter: Prefect draws its form in the UI from the descriptions, enums, bounds and
defaults below. `resolve` brings it together with the environment once, at the start of a run; nothing later asks the
environment again, so a replay sees the same values.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from fathom.config.environment import Environment
from fathom.config.form import ReadByTools, SetBy, Setting, fields_in
from fathom.config.groups import (
    ABOUT,
    EXTRACTIVE,
    PROFILES,
    AccessScope,
    Budget,
    CompressionSettings,
    Effort,
    Execution,
    Judging,
    ModelCallSettings,
    PeopleSettings,
    Price,
    Profile,
    ReportSettings,
    Role,
    RoleModel,
    SourceRules,
    WebSettings,
)
from fathom.config.templates import TemplatedSettings
from fathom.errors import InvalidInput

_BY_PROFILE = "as the profile says"
Vendor = Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)]


class SearchMode(StrEnum):
    """Whether search vendors are asked one after another, until one finds something, or all at once."""

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

    The fields stand in the order of Prefect's form, and their titles group them: template, depth, material, model,
    budget, report, people, and last the advanced settings.
    """

    profile: Annotated[Profile, Setting("--profile", "NAME")] = Field(
        Profile.standard,
        title="How deep: profile",
        description="How thorough the research is. "
        + " ".join(f"{profile}: {about[0].lower()}{about[1:]}" for profile, about in ABOUT.items()),
    )
    effort: Annotated[Effort, Setting("--effort", "NAME", page="pipeline")] = Field(
        Effort.auto,
        title="How deep: effort",
        description="How much of the profile a run uses. auto: less for a simple question, all of it for a broad "
        "one. fixed: always all of it.",
    )
    depth: Annotated[int | None, Setting("--depth", "N", empty=_BY_PROFILE)] = Field(
        None,
        title="How deep: rounds",
        ge=1,
        le=5,
        description="Number of research rounds. Between two rounds, Fathom checks what is missing.",
        examples=[2],
    )

    docs: Annotated[
        list[str],
        Setting(
            "--docs",
            "PATH",
            page="documents",
            by_template=False,
            set_by=SetBy.admins,
            tools=ReadByTools.always,
            is_path=True,
        ),
    ] = Field(
        default_factory=list,
        title="What to read: documents",
        description="Files or folders to research (text, PDF, Office, mail, tables and more). If empty and "
        "no web search is configured: the Python language reference.",
        examples=[["/data/notes", "/data/contract.pdf"]],
    )
    corpora: Annotated[list[str] | None, Setting("--corpus", "NAME", page="documents", by_template=False)] = Field(
        None,
        title="What to read: uploaded corpora",
        description="Names of uploaded corpora in the artifact store, researched in addition to the documents.",
        examples=[["handbook"]],
        max_length=20,
        exclude_if=lambda corpora: corpora is None,  # it came later: runs without it keep their calls
    )
    scope: Annotated[
        AccessScope | None, Setting("--scope", "NAME", empty="whatever the tools and models need", page="access")
    ] = Field(
        None,
        title="What to read: scope",
        description="What the run may read, and what may leave this machine; it overrides all other settings. "
        + "".join(f"{scope.value}: {scope.about}. " for scope in AccessScope).strip(),
        exclude_if=lambda scope: scope is None,  # it came later: runs without it keep their calls
    )
    library: Annotated[bool, Setting("--library", page="searching", by_template=False)] = Field(
        False,
        title="What to read: earlier runs",
        description="Also search what earlier runs have read, as far as you may read these runs. The report cites the "
        "original sources and says when they were read.",
        exclude_if=lambda library: not library,  # it came later: runs without it keep their calls
    )
    tools: Annotated[
        list[str] | None,
        Setting("--tools", "NAME,...", empty="all configured tools that belong to no group", page="searching"),
    ] = Field(
        None,
        title="What to read: tools",
        description="Tools or groups of tools that the researcher may use; `default` stands for the ones that it "
        "uses by itself.",
        examples=[["default", "scholarly"]],
    )
    search: Annotated[
        list[str] | None,
        Setting("--search", "NAME,...", empty="all configured vendors", page="searching", tools=ReadByTools.changed),
    ] = Field(
        None,
        title="What to read: search vendors",
        description="Search vendors that web_search asks, in this order.",
        examples=[["brave", "tavily"]],
    )
    search_mode: Annotated[
        SearchMode, Setting("--search-mode", "NAME", page="searching", tools=ReadByTools.changed)
    ] = Field(
        SearchMode.first,
        title="What to read: way of searching",
        description="How several vendors are used. first: ask the next vendor if one fails or finds nothing. all: "
        "ask all vendors at once.",
    )
    max_results: Annotated[int, Setting(tools=ReadByTools.always)] = Field(
        5,
        title="What to read: results",
        ge=1,
        le=20,
        description="Maximum number of pages or documents read per tool call.",
        examples=[10],
    )
    web: WebSettings = Field(WebSettings(), title="What to read: web searches")
    sources: SourceRules = Field(SourceRules(), title="What to read: web sources")
    fresh: Annotated[bool, Setting("--fresh", tools=ReadByTools.always)] = Field(
        False,
        title="What to read: fresh pages",
        description="Fetch search results and pages again instead of using cached ones.",
    )

    model: Annotated[
        str | None,
        Setting("--model", "MODEL", empty="extractive, which needs no model", variable="FATHOM_MODEL", page="models"),
    ] = Field(
        None,
        title="Model: name",
        description="The model for every role, by its litellm name.",
        examples=["openai/gpt-5-mini"],
    )
    fallback_models: Annotated[list[str], Setting("--fallback-model", "MODEL", page="faults")] = Field(
        default_factory=list,
        title="Model: fallbacks",
        description="litellm names of models that every role tries in turn while `model` is unavailable.",
        examples=[["anthropic/claude-haiku-4-5"]],
    )
    cheaper_model: Annotated[str | None, Setting("--cheaper-model", "MODEL", empty="none", page="budget")] = Field(
        None,
        title="Model: when money gets short",
        description="litellm name of the model that researches once 80 % of the budget for research is spent; the "
        "report keeps its own.",
        examples=["openai/gpt-5-nano"],
        exclude_if=lambda model: model is None,  # it came later: runs without it keep their calls
    )
    role_models: Annotated[dict[Role, RoleModel], Setting("--role-model", "ROLE=MODEL", page="models")] = Field(
        default_factory=dict,
        title="Model: by role",
        description="Separate models for single roles: clarifier, planner, researcher, compressor, critic, reporter, "
        "judge. A judge without a separate model uses the reporter's model, or else another role's.",
        examples=[{"reporter": {"model": "openai/gpt-5"}}],
    )

    budget: Budget = Field(Budget(), title="Budget: caps")
    prices: Annotated[
        dict[str, Price], Setting("--price", "MODEL=IN,OUT[,CACHED]", page="budget", set_by=SetBy.admins)
    ] = Field(
        default_factory=dict,
        title="Budget: prices",
        description="US dollars per million tokens by model name, for models whose price litellm does not know or "
        "whose price for you differs.",
        examples=[{"openai/my-model": {"input": 0.5, "output": 2}}],
    )
    search_prices: Annotated[
        dict[Vendor, Annotated[float, Field(ge=0)]],
        Setting("--search-price", "VENDOR=USD", page="budget", set_by=SetBy.admins),
    ] = Field(
        default_factory=dict,
        title="Budget: prices of searches",
        description="US dollars per search by vendor, where your price differs. 0: the vendor's searches and "
        "pages cost nothing.",
        examples=[{"brave": 0.003}],
    )

    mode: Annotated[Mode, Setting("--mode", "NAME")] = Field(
        Mode.report,
        title="Report: form",
        description="What the run writes. report: sections with citations. answer: at most 140 characters with "
        "citations.",
    )
    report: ReportSettings = Field(ReportSettings(), title="Report: length and checks")

    people: PeopleSettings = Field(PeopleSettings(), title="People: what to ask them")

    breadth: Annotated[int | None, Setting("--breadth", "N", empty=_BY_PROFILE)] = Field(
        None,
        title="Advanced: tool calls",
        ge=1,
        le=10,
        description="Maximum number of searches and other tool calls that a step makes at a time.",
        examples=[3],
    )
    max_steps: Annotated[int | None, Setting(empty=_BY_PROFILE)] = Field(
        None, title="Advanced: steps", ge=1, le=10, description="Maximum number of steps in a plan.", examples=[5]
    )
    turns: Annotated[int | None, Setting(empty=_BY_PROFILE)] = Field(
        None,
        title="Advanced: decisions",
        ge=1,
        le=10,
        description="Maximum number of decisions per step; each decision may make tool calls. At most two more may "
        "query tables.",
        examples=[2],
    )
    execution: Annotated[Execution | None, Setting(empty=_BY_PROFILE)] = Field(
        None,
        title="Advanced: execution",
        description="sequential: run one step after another, and compress the output of each call before the "
        "next call. parallel: run independent steps, and the calls of a step, at the same time.",
    )
    concurrency: Annotated[int, Setting(most=8)] = Field(
        8,
        title="Advanced: steps at once",
        ge=1,
        le=32,
        description="Maximum number of steps run at once if execution is parallel.",
        examples=[8],
    )
    sufficiency: int = Field(
        8,
        title="Advanced: sufficiency",
        ge=1,
        le=10,
        description="Score from the critic at which research ends.",
        examples=[9],
    )
    passage_tokens: Annotated[int | None, Setting(empty=_BY_PROFILE)] = Field(
        None,
        title="Advanced: passages",
        ge=0,
        le=50_000,
        description="Maximum tokens of source text shown to the writer of a section.",
        examples=[1_500],
    )
    max_context_tokens: int = Field(
        16_000,
        title="Advanced: notes",
        ge=1_000,
        le=500_000,
        description="Maximum tokens of notes shown to a role. If there are more, the best notes are kept.",
        examples=[32_000],
    )
    compression: CompressionSettings = Field(CompressionSettings(), title="Advanced: compression")
    model_calls: ModelCallSettings = Field(ModelCallSettings(), title="Advanced: model calls")
    fetch_allow_hosts: Annotated[
        list[str], Setting(page="fetching", by_template=False, set_by=SetBy.admins, tools=ReadByTools.always)
    ] = Field(
        [],
        title="Advanced: private hosts",
        description="Private hosts whose pages may be fetched, in addition to the hosts in FATHOM_FETCH_ALLOW.",
        examples=[["wiki.local:8080", "10.1.0.0/16"]],
    )
    render: Annotated[Render, Setting(page="fetching", tools=ReadByTools.changed)] = Field(
        Render.auto,
        title="Advanced: browser",
        description="auto: a page that has no text without its scripts is opened in a browser, if the extra "
        "`browser` and Chromium are installed. never: no browser is started.",
    )
    redact: Annotated[bool, Setting("--redact", page="fetching", tools=ReadByTools.always)] = Field(
        False,
        title="Advanced: redaction",
        description="Remove e-mail addresses, phone numbers, card numbers and IBANs from what tools read, before it is "
        "stored; what arrived over the network is then not stored as it came. The index of your own documents under "
        "FATHOM_CACHE keeps them.",
    )
    # No tool reads it any more, but it is part of the keys of their calls, by which old runs are replayed.
    embed_model: Annotated[str | None, Setting(page="extractive", set_by=SetBy.admins, tools=ReadByTools.always)] = (
        Field(
            None,
            title="Advanced: reader model",
            description="Sentence encoder that ranks quotations by meaning as well as by words where no model writes: "
            "the folder or the installed package that has its weights, `@`, and their SHA-256. Needs the extra "
            "`reader`.",
            examples=["/srv/models/all-MiniLM-L6-v2@53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"],
        )
    )
    artifacts: Annotated[
        str | None,
        Setting(
            "--artifacts",
            "URL",
            empty="./artifacts",
            variable="FATHOM_ARTIFACTS",
            by_template=False,
            set_by=SetBy.server,
            is_path=True,
        ),
    ] = Field(
        None,
        title="Advanced: artifacts",
        description="Root of the artifact store: a folder or an fsspec address.",
        examples=["s3://bucket/prefix"],
    )


SETTINGS = fields_in(ResearchSettings)
"""The field of every setting by its path, such as `budget.max_usd`, in the order of the form."""


class ResolvedSettings(ResearchSettings):
    """Complete settings: a run works with them, and its manifest records them.

    `role_models` has a model for every role, each with its own fallbacks; the settings of a template are merged in.
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
        wanted = Judging.never if self.profile is Profile.quick else Judging.always
        wanted = wanted if self.report.judge is Judging.auto else self.report.judge
        return wanted is Judging.always and self.role_models[Role.judge].model != EXTRACTIVE


def _role_models(chosen: Mapping[Role, RoleModel], model: RoleModel) -> dict[Role, RoleModel]:
    """Return a model for every role; the judge's is the writer's, or else another role's."""
    found = {role: chosen.get(role, model) for role in Role}
    if Role.judge not in chosen:
        others = (found[role] for role in (Role.reporter, Role.critic, *Role) if found[role].model != EXTRACTIVE)
        found[Role.judge] = next(others, model)
    return found


def scope_of(settings: ResearchSettings, environment: Environment) -> AccessScope | None:
    """Return the scope of a run: its own, within the scope that FATHOM_SCOPE pins for the process.

    Raises:
        InvalidInput: FATHOM_SCOPE is no scope, or the run asks for another one that is not narrower.
    """
    if not (pinned := environment.scope):
        return settings.scope
    if pinned not in list(AccessScope):
        names = ", ".join(AccessScope)
        raise InvalidInput(f"FATHOM_SCOPE is {pinned!r}, which is no scope.", next_step=f"set it to one of {names}")
    scope = AccessScope(pinned)
    if settings.scope and not scope.admits(settings.scope):
        narrower = " or ".join(one for one in AccessScope if scope.admits(one))
        message = f"The scope {settings.scope} is wider than {scope}, to which FATHOM_SCOPE limits every run here."
        raise InvalidInput(message, next_step=f"leave it out, or choose {narrower}")
    return settings.scope or scope


def resolve(settings: ResearchSettings, environment: Environment, tools: list[str]) -> ResolvedSettings:
    """Fill empty settings from the profile and the environment; `tools` are the configured ones.

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
            "scope": scope_of(settings, environment),
            "fetch_allow_hosts": sorted({*settings.fetch_allow_hosts, *environment.fetch_allow}),
            "artifacts": settings.artifacts or environment.artifacts,
        }
    )
    if resolved.report.judge is Judging.always and not resolved.judges:
        message = "`report.judge` is always, but no role of the run has a model."
        raise InvalidInput(message, next_step="set --model or --role-model judge=..., or report.judge to auto")
    return resolved
