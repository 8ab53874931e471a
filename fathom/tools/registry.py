"""Which tools there are, which of them a run may use, and how a call finds its tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber
from fathom.config.settings import ResearchSettings, ResolvedSettings
from fathom.errors import InvalidInput, MissingCredential, ToolNotFound
from fathom.models import Document, ToolCall, ToolOutput, ToolResult
from fathom.storage.cache import TimedCache
from fathom.text.urls import urls_in
from fathom.tools.artifacts import ArtifactGrepTool, ArtifactReader, ArtifactReadTool
from fathom.tools.base import Tool
from fathom.tools.documents.tool import DocumentsTool
from fathom.tools.fetch.allow import AllowList
from fathom.tools.fetch.tool import FetchTool
from fathom.tools.fetch.web import WebReader
from fathom.tools.redact import redact, redacted
from fathom.tools.search.searxng import SearXNG
from fathom.tools.search.tavily import Tavily
from fathom.tools.search.vendors import is_page
from fathom.tools.search.web_extract import WebExtractTool
from fathom.tools.search.web_search import WebSearchTool

SEARCHES_SECONDS, PAGES_SECONDS = 15 * 60, 60 * 60


@dataclass(frozen=True)
class _Run:
    """What tools are made of. What is read of the web passes through parts that they share."""

    settings: ResolvedSettings
    environment: Environment
    artifacts: ArtifactReader
    query: str

    @cached_property
    def searches(self) -> TimedCache:
        return self._cache("searches", SEARCHES_SECONDS)

    @cached_property
    def pages(self) -> TimedCache:
        return self._cache("pages", PAGES_SECONDS)

    @cached_property
    def reader(self) -> WebReader:
        return WebReader(AllowList.parse(self.settings.fetch_allow_hosts), self.pages)

    @cached_property
    def tavily(self) -> list[Tavily]:
        key, address = self.environment.tavily_key, self.environment.tavily_url
        return [Tavily(key, address, self.searches, self.pages)] if key else []

    @cached_property
    def searxng(self) -> list[SearXNG]:
        address = self.environment.searxng_url
        return [SearXNG(address, self.searches)] if address else []

    def _cache(self, name: str, seconds: float) -> TimedCache:
        """Return a cache; one that keeps nothing when personal data must not be stored or the web be asked anew."""
        off = self.settings.redact or self.settings.fresh
        clean = Scrubber(self.environment.secrets).text
        return TimedCache(None if off else self.environment.cache / name, seconds, clean)


class _Entry(NamedTuple):
    """How a tool is made, which variables configure it (one is enough), and whether the model may call it."""

    open: Callable[[_Run], Tool]
    variables: tuple[str, ...] = ()
    offered: bool = True


_SEARCH = ("TAVILY_API_KEY", "SEARXNG_URL")

# A new tool is one line here. The order is the one in which tools are offered.
_TOOLS = {
    "documents": _Entry(
        lambda r: DocumentsTool(r.settings.docs, r.environment.cache, r.settings.max_results, r.settings.embed_model)
    ),
    "web_search": _Entry(
        lambda r: WebSearchTool([*r.tavily, *r.searxng], r.settings.max_results, r.settings.sources), _SEARCH
    ),
    "web_extract": _Entry(lambda r: WebExtractTool([*r.tavily, r.reader]), _SEARCH, offered=False),
    "fetch": _Entry(lambda r: FetchTool(r.artifacts, r.query, r.reader)),
    "artifact_grep": _Entry(lambda r: ArtifactGrepTool(r.artifacts)),
    "artifact_read": _Entry(lambda r: ArtifactReadTool(r.artifacts)),
}


def configured_tools(settings: ResearchSettings, environment: Environment, query: str = "") -> list[str]:
    """Return the names of the tools a run may use: those asked for, else all that are configured.

    Without documents of the user's own, `documents` is the Python reference; it is left out when the web can be
    searched, unless it is asked for. `fetch` is there when something can be fetched: what a search returns, or what
    the query names.

    Raises:
        InvalidInput: there is no tool of a name that is asked for, or a host to allow or SEARXNG_URL is no address.
        MissingCredential: a tool is asked for whose key is not set.
    """
    set_here = {name for name, value in environment.variables.items() if value}
    keyed = [name for name, entry in _TOOLS.items() if not entry.variables or set_here.intersection(entry.variables)]
    address = environment.searxng_url
    if address and not is_page(address) and "web_search" in (settings.tools or keyed):
        raise InvalidInput("SEARXNG_URL is no web address.", next_step="set it to one such as http://localhost:8080")
    AllowList.parse([*settings.fetch_allow_hosts, *environment.fetch_allow])
    if not settings.tools:
        searched = "web_search" in keyed
        useful = {"documents": bool(settings.docs) or not searched, "fetch": searched or bool(urls_in(query))}
        return [name for name in keyed if useful.get(name, True)]
    known = [name for name, entry in _TOOLS.items() if entry.offered]
    for name in settings.tools:
        if name not in _TOOLS:
            raise InvalidInput(f"There is no tool {name!r}.", next_step="tools: " + ", ".join(known))
        if name not in keyed:
            needed = " or ".join(_TOOLS[name].variables)
            raise MissingCredential(f"The tool {name} is not configured.", next_step=f"set {needed}")
    # Searching without reading what was found would be half a tool.
    wanted = {*settings.tools, *(["web_extract"] if "web_search" in settings.tools else [])}
    return [name for name in _TOOLS if name in wanted]


class Toolbox:
    """The tools of one run.

    Args:
        tools: all that may be called.
        offered: the names of those that the model may call.
        scrubber: takes secrets out of what they return.
        redact: whether personal data is taken out of it too.
    """

    def __init__(
        self, tools: Sequence[Tool], offered: Sequence[str], *, scrubber: Scrubber, redact: bool = False
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._scrubber = scrubber
        self._redact = redact
        self.offered = {name: self._tools[name].description for name in offered}
        """The tools the model may call, with what it is told of them."""

    async def run(self, call: ToolCall) -> ToolOutput:
        """Serve a call.

        Raises:
            ToolNotFound: no tool of that name is enabled.
            ToolError: the call failed.
        """
        if call.tool not in self._tools:
            raise ToolNotFound(f"There is no tool {call.tool!r}.", next_step="tools: " + ", ".join(self.offered))
        with self._scrubber.errors():
            output = self._scrubber.model(await self._tools[call.tool].run(call.input))
        return redacted(output) if self._redact else output

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return the first call that the results of one decision make necessary, if there is one."""
        calls = (tool.follow_up(results) for tool in self._tools.values())
        return next((call for call in calls if call and call.tool in self._tools), None)

    async def survey(self, query: str, limit: int = 8) -> list[Document]:
        """Return the local documents closest to a query, by name; none when `documents` is not enabled."""
        documents = self._tools.get("documents")
        found = await documents.survey(query, limit) if isinstance(documents, DocumentsTool) else []
        found = [self._scrubber.model(document) for document in found]
        if not self._redact:
            return found
        return [Document(title=redact(d.title), headings=list(map(redact, d.headings))) for d in found]


def open_toolbox(
    settings: ResolvedSettings, environment: Environment, artifacts: ArtifactReader, query: str = ""
) -> Toolbox:
    """Make the tools that the settings name. Nothing is read and no connection made before the first call.

    Args:
        settings: what the run works with.
        environment: what the process was started with.
        artifacts: what the run has read so far.
        query: the run's question, which may name pages to fetch.
    """
    run = _Run(settings, environment, artifacts, query)
    chosen = {name: _TOOLS[name] for name in settings.tools}
    return Toolbox(
        [entry.open(run) for entry in chosen.values()],
        [name for name, entry in chosen.items() if entry.offered],
        scrubber=Scrubber(environment.secrets),
        redact=settings.redact,
    )
