"""The tools that a run has opened: the tools offered for a step, the tool of a call, and stand-ins.

The choice of tools that fit a step, stand in for a failed one, or are not asked any more follows from declarations,
words and recorded results, so a replay decides like the run. The design is the tool router of the Research engine
(7.3): words of a domain lead to its tools, everything else to the general ones.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from pydantic import JsonValue

from fathom.config.secrets import Scrubber, each_text
from fathom.config.settings import ResearchSettings
from fathom.errors import ToolNotFound, ToolRejected
from fathom.models import Catalogue, CheckedLink, PlanStep, Survey, ToolCall, ToolOutput, ToolResult
from fathom.text.markers import as_words
from fathom.text.plain import without_controls
from fathom.text.terms import Language, language_of, terms
from fathom.tools.base import RunContext, Tool, read_by_tools
from fathom.tools.documents_tool import SHIPPED, DocumentsTool
from fathom.tools.mcp.configuration import PREFIX
from fathom.tools.mcp.offer import OfferedTools
from fathom.tools.mcp.servers import McpServers
from fathom.tools.payment import receipt
from fathom.tools.redact import redact, redacted
from fathom.tools.registry import REGISTRY, Registry, check_scope
from fathom.tools.warc import recording


class Routing(NamedTuple):
    """The search tools for a step, the best first, and why these."""

    tools: list[str]
    why: str


class Toolbox:
    """The tools of one run. The scrubber removes secrets from their outputs; `redact` removes personal data, too.

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
        """The tools the model may call, with their descriptions for it."""
        self.searching: list[str] = []
        """The names of the tools that take a search query."""
        self._domains: dict[str, tuple[str, ...]] = {}
        self.specialised: list[str] = []
        """The names of the tools for certain subjects only."""
        self.servers = servers
        """The MCP servers, whose tools are known once they were asked."""
        self.offers: list[OfferedTools] = []
        """The offers of the MCP servers when the run began."""
        self._add(tools)

    def _add(self, tools: Sequence[Tool]) -> None:
        self._tools |= {tool.name: tool for tool in tools}
        self.offered |= {tool.name: tool.description for tool in tools if not (tool.follows or tool.over_tables)}
        self.searching += [tool.name for tool in tools if tool.searches]
        self._domains |= {tool.name: tool.domains for tool in tools if tool.searches}
        self.specialised += [tool.name for tool in tools if tool.searches and tool.domains]

    def take_up(self, offers: Sequence[OfferedTools]) -> None:
        """Take up the chosen tools of MCP servers from their offers."""
        if self.servers:
            self.offers = [*offers]
            self._add(self.servers.tools(offers))

    def for_step(self, step: PlanStep, query: str, resting: Collection[str] = ()) -> dict[str, str]:
        """Return the tools to offer for a step, with their descriptions for the model.

        The search tools among them are the ones that the plan names for the step, else the ones that fit the words of
        the step and of the run's question; resting tools are left out, unless no other is left.
        """
        others = [name for name in self.offered if name not in self.searching]
        return {name: self.offered[name] for name in (*self.route(step, query, resting).tools, *others)}

    def route(self, step: PlanStep, query: str, resting: Collection[str] = ()) -> Routing:
        """Return the search tools for a step, as `for_step` offers them, and why these."""
        text = " ".join((step.title, step.description, *step.queries, query))
        ways = {
            "the plan names them": [name for name in self.searching if name in step.tools],
            "they fit the words of the step and the question": fitting(self._domains, text),
            "the tools that would fit have failed": self.searching,
        }
        awake = (Routing([n for n in names if n not in resting], why) for why, names in ways.items())
        return next((found for found in awake if found.tools), Routing(self.searching, "every tool has failed"))

    async def over_tables(self, files: Sequence[str]) -> dict[str, str]:
        """Return the tools that work on the tables of some raw outputs, with their descriptions for the model."""
        found = {tool.name: await tool.offer(files) for tool in self._tools.values() if tool.over_tables}
        return {name: description for name, description in found.items() if description}

    def pays(self, name: str) -> bool:
        """Return whether each request of a tool is paid for, and so waits until the run's records are certain."""
        return name in self._tools and self._tools[name].pays

    def stand_ins(self, failed: str, resting: Collection[str] = ()) -> list[str]:
        """Return the searching tools to ask instead of one that failed, the best first."""
        others = {name: domains for name, domains in self._domains.items() if name not in (failed, *resting)}
        return stand_ins(self._domains.get(failed, ()), others)

    def recording(self) -> AbstractContextManager[list[bytes]]:
        """Yield the records of the responses that arrive inside the block; none if personal data must not be stored."""
        if self._redact:
            return nullcontext([])
        contact = self._run.environment.contact if self._run else ""
        return recording(Scrubber(self._scrubber.values | {contact} - {""}))  # some services take it in the address

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
            tool = self._tools[call.tool]
            output = await tool.run(as_words(call.input) if tool.searches else call.input)
        output = output.model_copy(update={"charges": charges})
        output = ToolOutput.model_validate(each_text(output.model_dump(), without_controls))
        output = self._scrubber.model(output)
        return redacted(output) if self._redact else output

    async def aclose(self) -> None:
        """End the processes that the tools have started, and the connections to MCP servers."""
        async with AsyncExitStack() as parts:
            if self._run:
                parts.push_async_callback(self._run.aclose)
            if self.servers:
                parts.push_async_callback(self.servers.aclose)

    def follow_ups(self, results: Sequence[ToolResult]) -> list[ToolCall]:
        """Return the calls that the results of one decision require."""
        calls = (tool.follow_up(results) for tool in self._tools.values())
        return [call for call in calls if call and call.tool in self._tools]

    async def links(self, urls: Sequence[str]) -> dict[str, CheckedLink]:
        """Return whether the addresses of web pages lead to pages."""
        from fathom.tools.fetch.web import check_links

        return await check_links(self._run.reader, urls) if self._run else {}

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
        """Return the holdings of the search tools, and the words that occur nowhere in them."""
        found = [await tool.holdings(words) for tool in self._tools.values()]
        return self._scrubber.model(Catalogue(holdings=[each for each in found if each]))


def open_toolbox(run: RunContext, *, registry: Registry = REGISTRY, servers: McpServers | None = None) -> Toolbox:
    """Open the tools that a run's settings name. Nothing is read and no connection made before the first call.

    `servers` are the MCP servers, if some are open already.
    """
    settings, environment, search = run.settings, run.environment, run.settings.search
    check_scope(settings, registry)
    run = replace(
        run,
        configured_vendors=[vendor for vendor in registry.wanted(search) if vendor.is_configured(environment)],
        fetchable=[tool.name for tool in registry.tools.values() if tool.fetchable],
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
            **({"earlier": run.earlier.folder} if run.earlier else {}),
            **({"library": run.library.asker} if run.library else {}),
            **({"corpora": run.corpora.digests} if run.corpora and run.corpora.digests else {}),
        },
        servers=servers,
    )


def searched_by_default(settings: ResearchSettings, tools: Collection[str]) -> str:
    """Return what a run with these tools searches for want of documents and of any other tool that searches.

    Empty if it has some: then what is searched is what the user chose.
    """
    searching = [tool.name for tool in REGISTRY.tools.values() if tool.searches and tool.name in tools]
    searching += [name for name in tools if name.startswith(PREFIX)]
    return SHIPPED if searching == [DocumentsTool.name] and not (settings.docs or settings.corpora) else ""


STAND_INS = 3  # tools that are asked in place of one that failed
MOST_FAILURES = 2  # consecutive calls of a tool that may fail in a run, each after its own attempts

Domains = Mapping[str, Sequence[str]]
"""Tools by name, each with the domains that it declares; one that fits everything declares none."""


def fitting(tools: Domains, text: str) -> list[str]:
    """Return the tools for a text: general tools, then tools of its domains, the closest first.

    If a text is about no domain of any tool, the choice is left to its reader: all tools are returned, tools of many
    domains before tools of few.
    """
    about = domains_of(text, {domain for declared in tools.values() for domain in declared})

    def distance(tool: str) -> float:
        declared = set(tools[tool])
        if not declared:
            return -1.0
        return 1 - len(about & declared) / len(declared) if about else 1 / len(declared)

    return sorted((tool for tool in tools if not about or distance(tool) < 1), key=distance)


def domains_of(text: str, domains: Iterable[str]) -> set[str]:
    """Return the domains that a text is about; a domain that is not in `domains.toml` is matched by its own words."""
    language = language_of([text])
    said = frozenset(terms(text, language))
    entries = {domain: _entries(language).get(domain) or [frozenset(terms(domain, language))] for domain in domains}
    return {domain for domain, known in entries.items() if any(entry <= said for entry in known if entry)}


@cache
def _entries(language: Language) -> Mapping[str, Collection[frozenset[str]]]:
    """Return the terms of each entry; the endings of languages other than English and German count in part."""
    listed = tomllib.loads(files("fathom.tools").joinpath("domains.toml").read_text(encoding="utf-8"))
    return {
        domain: {frozenset(terms(entry.replace("_", " "), language)) for entry in words.split()}
        for domain, words in listed.items()
    }


def stand_ins(domains: Sequence[str], others: Domains) -> list[str]:
    """Return the other search tools to ask in place of one that failed: the closest first, the web last.

    General tools have no stand-in: `web_search` goes from vendor to vendor by itself, and nothing else finds what is in
    the user's documents.
    """
    own = set(domains)
    closeness = {tool: len(own & set(its)) / len(own | set(its)) for tool, its in others.items() if own & set(its)}
    web = [tool for tool in others if tool == "web_search" and own]
    return [*sorted(closeness, key=lambda tool: -closeness[tool])[: STAND_INS - len(web)], *web]


def resting(results: Iterable[ToolResult]) -> set[str]:
    """Return the tools whose latest calls in a run failed, too many in a row to ask them again."""
    failures: Counter[str] = Counter()
    for result in results:
        failures[result.call.tool] = failures[result.call.tool] + 1 if result.failed else 0
    return {tool for tool, count in failures.items() if count >= MOST_FAILURES}
