"""Which tools and search vendors there are, which of them a run may use, and how a call finds its tool."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pkgutil import resolve_name

from pydantic import JsonValue

from fathom.budget.ledger import Ledger
from fathom.config.environment import CONTACT, Environment
from fathom.config.secrets import Scrubber, each_text
from fathom.config.settings import ResearchSettings, ResolvedSettings
from fathom.errors import InvalidInput, MissingCredential, ToolNotFound, ToolRejected
from fathom.models import Catalogue, PlanStep, Survey, ToolCall, ToolOutput, ToolResult
from fathom.text.cleaning import without_controls
from fathom.tools.base import ArtifactReader, Configurable, RunContext, SearchVendor, Tool, read_by_tools
from fathom.tools.earlier import EarlierRun
from fathom.tools.fetch.allow import AllowList
from fathom.tools.pages import is_page
from fathom.tools.paying import Till, receipt
from fathom.tools.redact import redact, redacted
from fathom.tools.routing import fitting, stand_ins
from fathom.tools.search.choice import check_vendors, named

# A new tool or vendor is one line here. Tools are offered and vendors are asked in this order.
TOOLS = (
    "fathom.tools.earlier:EarlierRunTool",
    "fathom.tools.documents.tool:DocumentsTool",
    "fathom.tools.search.web_search:WebSearchTool",
    "fathom.tools.search.web_extract:WebExtractTool",
    "fathom.tools.fetch.tool:FetchTool",
    "fathom.tools.scholarly.arxiv:ArxivTool",
    "fathom.tools.scholarly.openalex:OpenAlexTool",
    "fathom.tools.scholarly.crossref:CrossrefTool",
    "fathom.tools.scholarly.semantic_scholar:SemanticScholarTool",
    "fathom.tools.scholarly.pubmed:PubMedTool",
    "fathom.tools.scholarly.europe_pmc:EuropePMCTool",
    "fathom.tools.scholarly.full_text:FullTextTool",
    "fathom.tools.factual.wikipedia:WikipediaTool",
    "fathom.tools.factual.wikidata:WikidataTool",
    "fathom.tools.factual.github:GitHubTool",
    "fathom.tools.factual.stack_exchange:StackExchangeTool",
    "fathom.tools.factual.sec_edgar:SecEdgarTool",
    "fathom.tools.artifacts:ArtifactGrepTool",
    "fathom.tools.artifacts:ArtifactReadTool",
)
VENDORS = (
    "fathom.tools.search.tavily:Tavily",
    "fathom.tools.search.searxng:SearXNG",
    "fathom.tools.search.serper:Serper",
    "fathom.tools.search.brave:Brave",
    "fathom.tools.search.exa:Exa",
    "fathom.tools.search.you:You",
    "fathom.tools.search.linkup:Linkup",
    "fathom.tools.search.firecrawl:Firecrawl",
    "fathom.tools.search.perplexity:Perplexity",
    "fathom.tools.search.jina:Jina",
)
DEFAULT = "default"  # in the settings: the tools that a run uses by itself, beside others that are named


@dataclass(frozen=True)
class Registry:
    """The tools and the search vendors, each as `module:class`."""

    tool_classes: tuple[str, ...] = TOOLS
    vendor_classes: tuple[str, ...] = VENDORS

    @cached_property
    def tools(self) -> dict[str, type[Tool]]:
        """The tools by name."""
        return {tool.name: tool for tool in map(resolve_name, self.tool_classes)}

    @cached_property
    def vendors(self) -> list[type[SearchVendor]]:
        """The search vendors."""
        return [resolve_name(vendor) for vendor in self.vendor_classes]

    @cached_property
    def groups(self) -> list[str]:
        """The groups of tools that are used only where they are named."""
        return list(dict.fromkeys(tool.group for tool in self.tools.values() if tool.group))

    def meant(self, name: str) -> list[type[Tool]]:
        """Return the tools that a name of a tool or group in the settings means; none if there is no such name."""
        return [tool for tool in self.tools.values() if name in names_of(tool)]

    def wanted(self, names: Sequence[str] | None) -> Sequence[type[SearchVendor]]:
        """Return the search vendors of these names, in their order; all vendors if there are none.

        Raises:
            InvalidInput: there is no such vendor.
        """
        return named(names, self.vendors) if names else self.vendors

    def configured_by(self, tool: type[Tool], search: Sequence[str] | None = None) -> Sequence[type[Configurable]]:
        """Return what configures a tool, where the search vendors may be named; one of them is enough."""
        return self.wanted(search) if tool.by_vendors else [tool]

    def is_configured(self, tool: type[Tool], environment: Environment, search: Sequence[str] | None = None) -> bool:
        """Return whether a tool can be used."""
        return any(way.is_configured(environment) for way in self.configured_by(tool, search))

    def variables(self, tool: type[Tool], search: Sequence[str] | None = None) -> str:
        """Return the variables that configure a tool, as a message names them."""
        return " or ".join(" and ".join(way.variables) for way in self.configured_by(tool, search))


REGISTRY = Registry()


def configured_tools(
    settings: ResearchSettings,
    environment: Environment,
    query: str = "",
    registry: Registry = REGISTRY,
    *,
    follow_up: bool = False,
) -> list[str]:
    """Return the names of the tools a run may use: those asked for, else all that are configured and useful.

    A group stands for those of its tools that are configured, `default` for what a run uses that asks for none.
    A `follow_up` has those of its own in any case.

    Raises:
        InvalidInput: a tool that is asked for does not exist or is only for a follow-up, or a variable or a host to
            allow is not an address.
        MissingCredential: a tool that is asked for is not configured.
    """
    AllowList.parse([*settings.fetch_allow_hosts, *environment.fetch_allow])
    check_vendors(settings, environment, registry.vendors)
    tools, wanted = registry.tools, set(settings.tools or [DEFAULT])
    able = [tool for tool in tools.values() if follow_up or not tool.of_follow_ups]
    configured = [tool for tool in able if registry.is_configured(tool, environment)]
    for name in settings.tools or ():
        if not (meant := registry.meant(name)):
            known = [tool.name for tool in able if not tool.follows]
            groups = ", ".join([DEFAULT, *registry.groups])
            raise InvalidInput(f"There is no tool {name!r}.", next_step=f"tools: {', '.join(known)}; groups: {groups}")
        if not any(tool in able for tool in meant):
            raise InvalidInput(f"The tool {name} works in a follow-up only.", next_step="fathom ask RUN QUESTION")
        if not any(tool in configured for tool in meant):
            needed = " or ".join(dict.fromkeys(registry.variables(tool, settings.search) for tool in meant))
            raise MissingCredential(f"The tool {name} is not configured.", next_step=f"set {needed}")
    usable = [tool for tool in configured if tool.of_follow_ups or not wanted.isdisjoint(names_of(tool))]
    asked = wanted - {DEFAULT}
    called = [t for t in usable if not asked.isdisjoint(names_of(t)) or t.is_useful(settings, query, usable)]
    followed = {name for tool in called for name in (tool.name, tool.group) if name}
    chosen = [tool for tool in configured if tool in called or tool.follows in followed]
    for tool in chosen:
        check_addresses(registry.configured_by(tool, settings.search), environment)
    return [tool.name for tool in chosen]


def names_of(tool: type[Tool]) -> set[str]:
    """Return the names by which settings choose a tool.

    A source of some domains is chosen by its own: it needs no key, so every question would be sent to it.
    """
    return {tool.name, tool.group or (tool.name if tool.domains or tool.follows else DEFAULT)}


def check_addresses(ways: Sequence[type[Configurable]], environment: Environment) -> None:
    """Check that the variables of tools or vendors which hold addresses do so, as far as they are set.

    The contact address is one of them.

    Raises:
        InvalidInput: one does not.
    """
    names = [name for way in ways for name in (*way.variables, *way.optional)]
    if CONTACT in names:
        _ = environment.contact
    for name in (name for name in names if name.endswith("_URL")):
        if (address := environment.variables.get(name)) and not is_page(address):
            raise InvalidInput(f"{name} is not a web address.", next_step="set it to one such as http://localhost:8080")


class Toolbox:
    """The tools of one run. The scrubber takes secrets out of what they return; `redact`, personal data too.

    `missing` holds the variables of the tools that cannot be called, because these are not set here.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        scrubber: Scrubber,
        missing: Mapping[str, str] | None = None,
        redact: bool = False,
        settings: dict[str, JsonValue] | None = None,
        run: RunContext | None = None,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._missing = missing or {}
        self._scrubber = scrubber
        self._redact = redact
        self._run = run
        self.settings = settings or {}
        """The settings that an output depends on."""
        self.offered = {tool.name: tool.description for tool in tools if not tool.follows}
        """The tools the model may call, with what it is told about them."""
        self.searching = [tool.name for tool in tools if tool.searches]
        """The names of those that take a search query."""
        self._domains = {name: self._tools[name].domains for name in self.searching}
        self.specialised = [name for name, domains in self._domains.items() if domains]
        """The names of those that are for some subjects only."""

    def for_step(self, step: PlanStep, query: str, resting: Collection[str] = ()) -> dict[str, str]:
        """Return the tools to offer for a step, with what the model is told about them.

        Of the searching ones, these are what the plan names for the step, else what fits the words of the step and of
        the run's question; without those that rest, unless no other is left.
        """
        text = " ".join((step.title, step.description, *step.queries, query))
        named = [name for name in self.searching if name in step.tools]
        awake = (
            [n for n in names if n not in resting] for names in (named, fitting(self._domains, text), self.searching)
        )
        fit = next(filter(None, awake), self.searching)
        others = [name for name in self.offered if name not in self.searching]
        return {name: self.offered[name] for name in (*fit, *others)}

    def stand_ins(self, failed: str, resting: Collection[str] = ()) -> list[str]:
        """Return the searching tools to ask instead of one that failed, the best first."""
        others = {name: domains for name, domains in self._domains.items() if name not in (failed, *resting)}
        return stand_ins(self._domains.get(failed, ()), others)

    async def run(self, call: ToolCall) -> ToolOutput:
        """Serve a call.

        Raises:
            ToolNotFound: no tool of that name is enabled.
            ToolError: the call failed.
        """
        if call.tool not in self._tools:
            raise ToolNotFound(f"There is no tool {call.tool!r}.", next_step="tools: " + ", ".join(self.offered))
        if variables := self._missing.get(call.tool):
            raise ToolRejected(f"The tool {call.tool} is not configured.", next_step=f"set {variables}")
        with self._scrubber.errors(), receipt() as charges:
            output = await self._tools[call.tool].run(call.input)
        output = output.model_copy(update={"charges": charges})
        output = ToolOutput.model_validate(each_text(output.model_dump(), without_controls))
        output = self._scrubber.model(output)
        return redacted(output) if self._redact else output

    async def aclose(self) -> None:
        """End what the tools have started."""
        if self._run:
            await self._run.aclose()

    def follow_ups(self, results: Sequence[ToolResult]) -> list[ToolCall]:
        """Return the calls that the results of one decision make necessary."""
        calls = (tool.follow_up(results) for tool in self._tools.values())
        return [call for call in calls if call and call.tool in self._tools]

    async def survey(self, query: str, limit: int = 8) -> Survey:
        """Return the local documents closest to a query, by name, and the files that are not read."""
        surveys = [await tool.survey(query, limit) for tool in self._tools.values()]
        found = Survey(
            documents=[document for survey in surveys for document in survey.documents],
            unread=[file for survey in surveys for file in survey.unread],
        )
        found = self._scrubber.model(found)
        return Survey.model_validate(each_text(found.model_dump(), redact)) if self._redact else found

    async def holdings(self, words: Sequence[str]) -> Catalogue:
        """Return what the search tools can find, and which of some words is nowhere in it."""
        found = [await tool.holdings(words) for tool in self._tools.values()]
        return self._scrubber.model(Catalogue(holdings=[each for each in found if each]))


def open_toolbox(
    settings: ResolvedSettings,
    environment: Environment,
    artifacts: ArtifactReader,
    query: str = "",
    *,
    registry: Registry = REGISTRY,
    ledger: Ledger | None = None,
    earlier: EarlierRun | None = None,
) -> Toolbox:
    """Open the tools that the settings name. Nothing is read and no connection made before the first call.

    The query is the run's question, which may name pages to fetch; the ledger is that of the run, which pays; `earlier`
    is the run that it follows up on.
    """
    search = settings.search
    run = RunContext(
        settings,
        environment,
        artifacts,
        query,
        configured_vendors=[vendor for vendor in registry.wanted(search) if vendor.is_configured(environment)],
        fetchable=[tool.name for tool in registry.tools.values() if tool.fetchable],
        till=Till(ledger, settings.search_prices),
        earlier=earlier,
    )
    chosen = [tool for tool in registry.tools.values() if tool.name in settings.tools]
    return Toolbox(
        [tool.open(run) for tool in chosen],
        missing={
            t.name: registry.variables(t, search) for t in chosen if not registry.is_configured(t, environment, search)
        },
        scrubber=Scrubber(environment.secrets),
        redact=settings.redact,
        run=run,
        settings={**read_by_tools(settings), **({"earlier": earlier.folder} if earlier else {})},
    )
