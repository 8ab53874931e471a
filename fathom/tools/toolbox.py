"""The tools that a run has opened: what is offered for a step, and how a call finds its tool."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack

from pydantic import JsonValue

from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber, each_text
from fathom.config.settings import ResolvedSettings
from fathom.errors import ToolNotFound, ToolRejected
from fathom.models import Catalogue, PlanStep, Survey, ToolCall, ToolOutput, ToolResult
from fathom.text.plain import without_controls
from fathom.tools.base import ArtifactReader, RunContext, Tool, read_by_tools
from fathom.tools.documents.uploaded import UploadedCorpora
from fathom.tools.earlier import EarlierRun
from fathom.tools.mcp.configuration import PREFIX
from fathom.tools.mcp.offer import Offer
from fathom.tools.mcp.servers import McpServers
from fathom.tools.paying import Till, receipt
from fathom.tools.redact import redact, redacted
from fathom.tools.registry import REGISTRY, Registry
from fathom.tools.routing import fitting, stand_ins


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
        servers: McpServers | None = None,
    ) -> None:
        self._tools: dict[str, Tool] = {}
        self._missing = missing or {}
        self._scrubber = scrubber
        self._redact = redact
        self._run = run
        self.settings = settings or {}
        """The settings that an output depends on."""
        self.offered: dict[str, str] = {}
        """The tools the model may call, with what it is told about them."""
        self.searching: list[str] = []
        """The names of those that take a search query."""
        self._domains: dict[str, tuple[str, ...]] = {}
        self.specialised: list[str] = []
        """The names of those that are for some subjects only."""
        self.servers = servers
        """The MCP servers, whose tools are known once they were asked."""
        self.offers: list[Offer] = []
        """What the MCP servers offered when the run began."""
        self._add(tools)

    def _add(self, tools: Sequence[Tool]) -> None:
        self._tools |= {tool.name: tool for tool in tools}
        self.offered |= {tool.name: tool.description for tool in tools if not tool.follows}
        self.searching += [tool.name for tool in tools if tool.searches]
        self._domains |= {tool.name: tool.domains for tool in tools if tool.searches}
        self.specialised += [tool.name for tool in tools if tool.searches and tool.domains]

    def take_up(self, offers: Sequence[Offer]) -> None:
        """Take up the chosen tools of MCP servers from what these offered."""
        if self.servers:
            self.offers = [*offers]
            self._add(self.servers.tools(offers))

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
        """End what the tools have started, and the connections to MCP servers."""
        async with AsyncExitStack() as parts:
            if self._run:
                parts.push_async_callback(self._run.aclose)
            if self.servers:
                parts.push_async_callback(self.servers.aclose)

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
    corpora: UploadedCorpora | None = None,
    servers: McpServers | None = None,
) -> Toolbox:
    """Open the tools that the settings name. Nothing is read and no connection made before the first call.

    The query is the run's question, which may name pages to fetch; the ledger is that of the run, which pays; `earlier`
    is the run that it follows up on. `corpora` are the uploaded ones in the editions that it reads, `servers` the MCP
    servers, where some are open already.
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
        corpora=corpora,
    )
    chosen = [tool for tool in registry.tools.values() if tool.name in settings.tools]
    of_servers = [name for name in settings.tools if name.startswith(PREFIX)]
    servers = servers or (McpServers(environment, of_servers) if of_servers else None)
    return Toolbox(
        [tool.open(run) for tool in chosen],
        missing={
            t.name: registry.variables(t, search) for t in chosen if not registry.is_configured(t, environment, search)
        },
        scrubber=Scrubber(environment.secrets | servers.secrets if servers else environment.secrets),
        redact=settings.redact,
        run=run,
        settings={
            **read_by_tools(settings),
            **({"earlier": earlier.folder} if earlier else {}),
            **({"corpora": corpora.digests} if corpora and corpora.digests else {}),
        },
        servers=servers,
    )
