"""Which tools and search vendors there are, which of them a run may use, and how a call finds its tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pkgutil import resolve_name

from pydantic import JsonValue

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber, each_text
from fathom.config.settings import ResearchSettings, ResolvedSettings
from fathom.errors import InvalidInput, MissingCredential, ToolNotFound, ToolRejected
from fathom.models import Catalogue, Survey, ToolCall, ToolOutput, ToolResult
from fathom.text.cleaning import without_controls
from fathom.tools.base import READ_BY_TOOLS, ArtifactReader, Configurable, RunContext, SearchVendor, Tool
from fathom.tools.fetch.allow import AllowList
from fathom.tools.mcp.configuration import PREFIX
from fathom.tools.mcp.offer import Offer
from fathom.tools.mcp.servers import McpServers, allowed_tools
from fathom.tools.mcp.tool import McpTool
from fathom.tools.pages import is_page
from fathom.tools.plugins import Plugins, load_plugins
from fathom.tools.redact import redact, redacted

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
)


@dataclass(frozen=True)
class Registry:
    """The tools and the search vendors, each as `module:class`, and those of other packages after them."""

    tool_classes: tuple[str, ...] = TOOLS
    vendor_classes: tuple[str, ...] = VENDORS

    @cached_property
    def _own_tools(self) -> list[type[Tool]]:
        return [resolve_name(tool) for tool in self.tool_classes]

    @cached_property
    def _own_vendors(self) -> list[type[SearchVendor]]:
        return [resolve_name(vendor) for vendor in self.vendor_classes]

    @cached_property
    def plugins(self) -> Plugins:
        """What other packages register."""
        return load_plugins({one.name for one in (*self._own_tools, *self._own_vendors)})

    @cached_property
    def tools(self) -> dict[str, type[Tool]]:
        """The tools by name."""
        return {tool.name: tool for tool in (*self._own_tools, *self.plugins.tools)}

    @cached_property
    def vendors(self) -> list[type[SearchVendor]]:
        """The search vendors."""
        return [*self._own_vendors, *self.plugins.vendors]

    def configured_by(self, tool: type[Tool]) -> Sequence[type[Configurable]]:
        """Return what configures a tool; one of them is enough."""
        return self.vendors if tool.by_vendors else [tool]

    def is_configured(self, tool: type[Tool], environment: Environment) -> bool:
        """Return whether a tool can be used."""
        return any(way.is_configured(environment) for way in self.configured_by(tool))

    def variables(self, tool: type[Tool]) -> str:
        """Return the variables that configure a tool, as a message names them."""
        return " or ".join(" and ".join(way.variables) for way in self.configured_by(tool))


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
    tools = registry.tools
    configured = [tool for tool in tools.values() if registry.is_configured(tool, environment)]
    wanted = settings.tools is None or any(name.startswith(PREFIX) for name in settings.tools)
    of_servers = allowed_tools(environment) if wanted else []
    for name in settings.tools or ():
        if name in of_servers:
            continue
        if name not in tools and (problem := registry.plugins.broken.get(name)):
            raise InvalidInput(f"The tool {name} cannot be used: {problem}.", next_step="mend or remove the package")
        if name not in tools:
            known = ", ".join([*(name for name, tool in tools.items() if not tool.follows), *of_servers])
            raise InvalidInput(f"There is no tool {name!r}.", next_step=f"tools: {known}")
        if tools[name] not in configured:
            needed = registry.variables(tools[name])
            raise MissingCredential(f"The tool {name} is not configured.", next_step=f"set {needed}")
    if settings.tools:
        chosen = [tool for tool in configured if tool.name in settings.tools or tool.follows in settings.tools]
    else:
        beside: list[type[Tool]] = [*configured, McpTool] if of_servers else configured
        chosen = [tool for tool in configured if tool.is_useful(settings, query, beside)]
    for tool in chosen:
        check_addresses(registry.configured_by(tool), environment)
    return [
        *(tool.name for tool in chosen),
        *(name for name in of_servers if not settings.tools or name in settings.tools),
    ]


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
        servers: McpServers | None = None,
    ) -> None:
        self._tools: dict[str, Tool] = {}
        self._missing = missing or {}
        self._scrubber = scrubber
        self._redact = redact
        self.settings = settings or {}
        """The settings that an output depends on."""
        self.offered: dict[str, str] = {}
        """The tools the model may call, with what it is told about them."""
        self.searching: list[str] = []
        """The names of those that take a search query."""
        self.servers = servers
        """The MCP servers, whose tools are known once they were asked."""
        self.offers: list[Offer] = []
        """What the MCP servers offered when the run began."""
        self._add(tools)

    def _add(self, tools: Sequence[Tool]) -> None:
        self._tools |= {tool.name: tool for tool in tools}
        self.offered |= {tool.name: tool.description for tool in tools if not tool.follows}
        self.searching += [tool.name for tool in tools if tool.searches]

    def take_up(self, offers: Sequence[Offer]) -> None:
        """Take up the chosen tools of MCP servers from what these offered."""
        if self.servers:
            self.offers = [*offers]
            self._add(self.servers.tools(offers))

    async def aclose(self) -> None:
        """Close the connections to MCP servers and end their programs."""
        if self.servers:
            await self.servers.aclose()

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
        with self._scrubber.errors():
            output = await self._tools[call.tool].run(call.input)
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
    registry: Registry = REGISTRY,
) -> Toolbox:
    """Open the tools that the settings name. Nothing is read and no connection made before the first call.

    The query is the run's question, which may name pages to fetch.
    """
    run = RunContext(
        settings,
        environment,
        artifacts,
        query,
        configured_vendors=[vendor for vendor in registry.vendors if vendor.is_configured(environment)],
        fetchable=[tool.name for tool in registry.tools.values() if tool.fetchable],
    )
    chosen = [tool for tool in registry.tools.values() if tool.name in settings.tools]
    of_servers = [name for name in settings.tools if name.startswith(PREFIX)]
    servers = McpServers(environment, of_servers) if of_servers else None
    return Toolbox(
        [tool.open(run) for tool in chosen],
        missing={t.name: registry.variables(t) for t in chosen if not registry.is_configured(t, environment)},
        scrubber=Scrubber(environment.secrets | servers.secrets if servers else environment.secrets),
        redact=settings.redact,
        settings=settings.model_dump(mode="json", include=READ_BY_TOOLS),
        servers=servers,
    )
