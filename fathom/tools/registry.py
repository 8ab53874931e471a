"""Which tools and search vendors there are, which of them a run may use, and how a call finds its tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pkgutil import resolve_name

from pydantic import JsonValue

from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber, each_text
from fathom.config.settings import ResearchSettings, ResolvedSettings
from fathom.errors import InvalidInput, MissingCredential, ToolNotFound, ToolRejected
from fathom.models import Catalogue, Survey, ToolCall, ToolOutput, ToolResult
from fathom.text.cleaning import without_controls
from fathom.tools.base import ArtifactReader, Configurable, RunContext, SearchVendor, Tool, read_by_tools
from fathom.tools.fetch.allow import AllowList
from fathom.tools.pages import is_page
from fathom.tools.paying import Till, receipt
from fathom.tools.redact import redact, redacted
from fathom.tools.search.choice import check_vendors, named

# A new tool or vendor is one line here. Tools are offered and vendors are asked in this order.
TOOLS = (
    "fathom.tools.documents.tool:DocumentsTool",
    "fathom.tools.search.web_search:WebSearchTool",
    "fathom.tools.search.web_extract:WebExtractTool",
    "fathom.tools.fetch.tool:FetchTool",
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
    settings: ResearchSettings, environment: Environment, query: str = "", registry: Registry = REGISTRY
) -> list[str]:
    """Return the names of the tools a run may use: those asked for, else all that are configured and useful.

    Raises:
        InvalidInput: a tool that is asked for does not exist, or a variable or a host to allow is not an address.
        MissingCredential: a tool that is asked for is not configured.
    """
    AllowList.parse([*settings.fetch_allow_hosts, *environment.fetch_allow])
    check_vendors(settings, environment, registry.vendors)
    tools = registry.tools
    configured = [tool for tool in tools.values() if registry.is_configured(tool, environment, settings.search)]
    for name in settings.tools or ():
        if name not in tools:
            known = ", ".join(name for name, tool in tools.items() if not tool.follows)
            raise InvalidInput(f"There is no tool {name!r}.", next_step=f"tools: {known}")
        if tools[name] not in configured:
            needed = registry.variables(tools[name])
            raise MissingCredential(f"The tool {name} is not configured.", next_step=f"set {needed}")
    if settings.tools:
        chosen = [tool for tool in configured if tool.name in settings.tools or tool.follows in settings.tools]
    else:
        chosen = [tool for tool in configured if tool.is_useful(settings, query, configured)]
    for tool in chosen:
        check_addresses(registry.configured_by(tool, settings.search), environment)
    return [tool.name for tool in chosen]


def check_addresses(ways: Sequence[type[Configurable]], environment: Environment) -> None:
    """Check that the variables of tools or vendors which hold addresses do so, as far as they are set.

    Raises:
        InvalidInput: one does not.
    """
    for name in (name for way in ways for name in (*way.variables, *way.optional) if name.endswith("_URL")):
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
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._missing = missing or {}
        self._scrubber = scrubber
        self._redact = redact
        self.settings = settings or {}
        """The settings that an output depends on."""
        self.offered = {tool.name: tool.description for tool in tools if not tool.follows}
        """The tools the model may call, with what it is told about them."""
        self.searching = [tool.name for tool in tools if tool.searches]
        """The names of those that take a search query."""

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

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return the first call that the results of one decision make necessary, if there is one."""
        calls = (tool.follow_up(results) for tool in self._tools.values())
        return next((call for call in calls if call and call.tool in self._tools), None)

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
) -> Toolbox:
    """Open the tools that the settings name. Nothing is read and no connection made before the first call.

    The query is the run's question, which may name pages to fetch; the ledger is that of the run, which pays.
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
    )
    chosen = [tool for tool in registry.tools.values() if tool.name in settings.tools]
    return Toolbox(
        [tool.open(run) for tool in chosen],
        missing={
            t.name: registry.variables(t, search) for t in chosen if not registry.is_configured(t, environment, search)
        },
        scrubber=Scrubber(environment.secrets),
        redact=settings.redact,
        settings=read_by_tools(settings),
    )
