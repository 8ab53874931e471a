"""Which tools there are, which of them a run may use, and how a call finds its tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fathom.environment import Environment
from fathom.errors import InvalidInput, MissingCredential, ToolNotFound
from fathom.models import Document, ToolCall, ToolOutput, ToolResult
from fathom.settings import ResearchSettings, ResolvedSettings
from fathom.sources import urls_in
from fathom.tools.artifacts import ArtifactGrepTool, ArtifactReader, ArtifactReadTool
from fathom.tools.base import Tool
from fathom.tools.documents import DocumentsTool
from fathom.tools.fetch import AllowList, FetchTool
from fathom.tools.redact import redacted
from fathom.tools.web_extract import WebExtractTool
from fathom.tools.web_search import WebSearchTool

__all__ = ["Toolbox", "configured_tools", "open_toolbox"]


class _Entry(NamedTuple):
    """How a tool is made, which variable holds its key, and whether the model may call it."""

    open: Callable[[ResolvedSettings, Environment, ArtifactReader, str], Tool]
    key: str = ""
    offered: bool = True


_TAVILY = "TAVILY_API_KEY"

# A new tool is one line here. The order is the one in which tools are offered.
_TOOLS = {
    "documents": _Entry(lambda s, e, a, q: DocumentsTool(s.docs, e.cache, s.max_results, s.embed_model)),
    "web_search": _Entry(
        lambda s, e, a, q: WebSearchTool(e.tavily_key or "", e.tavily_url, s.max_results),
        _TAVILY,
    ),
    "web_extract": _Entry(lambda s, e, a, q: WebExtractTool(e.tavily_key or "", e.tavily_url), _TAVILY, offered=False),
    "fetch": _Entry(
        lambda s, e, a, q: FetchTool(a, q, AllowList.parse(s.fetch_allow_hosts), _page_cache(s, e)),
    ),
    "artifact_grep": _Entry(lambda s, e, a, q: ArtifactGrepTool(a)),
    "artifact_read": _Entry(lambda s, e, a, q: ArtifactReadTool(a)),
}


def _page_cache(settings: ResolvedSettings, environment: Environment) -> Path | None:
    """Return where fetched pages are kept for other runs; nowhere when personal data must not be stored."""
    return None if settings.redact else environment.cache / "pages"


def configured_tools(settings: ResearchSettings, environment: Environment, query: str = "") -> list[str]:
    """Return the names of the tools a run may use: those asked for, else all that are configured.

    Without documents of the user's own, `documents` is the Python reference; it is left out when the web can be
    searched, unless it is asked for. `fetch` is there when something can be fetched: what a search returns, or what
    the query names.

    Raises:
        InvalidInput: there is no tool of a name that is asked for, or a host to allow is none.
        MissingCredential: a tool is asked for whose key is not set.
    """
    keyed = [name for name, entry in _TOOLS.items() if not entry.key or environment.variables.get(entry.key)]
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
            raise MissingCredential(f"The tool {name} needs a key.", next_step=f"set {_TOOLS[name].key}")
    # Searching without reading what was found would be half a tool.
    wanted = {*settings.tools, *(["web_extract"] if "web_search" in settings.tools else [])}
    return [name for name in _TOOLS if name in wanted]


class Toolbox:
    """The tools of one run.

    Args:
        tools: all that may be called.
        offered: the names of those that the model may call.
        redact: whether personal data is taken out of what they return.
    """

    def __init__(self, tools: Sequence[Tool], offered: Sequence[str], *, redact: bool = False) -> None:
        self._tools = {tool.name: tool for tool in tools}
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
        output = await self._tools[call.tool].run(call.input)
        return redacted(output) if self._redact else output

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return the first call that the results of one decision make necessary, if there is one."""
        calls = (tool.follow_up(results) for tool in self._tools.values())
        return next((call for call in calls if call and call.tool in self._tools), None)

    async def survey(self, query: str, limit: int = 8) -> list[Document]:
        """Return the local documents closest to a query, by name; none when `documents` is not enabled."""
        documents = self._tools.get("documents")
        return await documents.survey(query, limit) if isinstance(documents, DocumentsTool) else []


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
    chosen = {name: _TOOLS[name] for name in settings.tools}
    return Toolbox(
        [entry.open(settings, environment, artifacts, query) for entry in chosen.values()],
        [name for name, entry in chosen.items() if entry.offered],
        redact=settings.redact,
    )
