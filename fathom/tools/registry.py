"""The tools and search vendors, including other packages', and the choice of the ones that a run may use.

Other packages register tools and search vendors in the entry-point group `fathom.tools`. They are looked up when tools
are first needed, so that no command waits for tools that it does not use. A package that cannot be loaded makes no
command fail: `fathom doctor` names it, and so does an error about its tool.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name

from fathom.budget.caps import CAPS
from fathom.config.environment import CONTACT, Environment
from fathom.config.groups import AccessScope
from fathom.config.settings import ResearchSettings, ResolvedSettings, scope_of
from fathom.errors import InvalidInput, MissingCredential
from fathom.text.plain import clean_line
from fathom.tools.base import Configurable, SearchVendor, Tool
from fathom.tools.fetch.allow import AllowList
from fathom.tools.mcp.configuration import PREFIX
from fathom.tools.mcp.servers import McpTool, allowed_tools
from fathom.tools.pages import is_page
from fathom.tools.payment import Price, SearchBudget
from fathom.tools.search.over_litellm import PREFIX as LITELLM
from fathom.tools.search.over_litellm import PROVIDERS, vendor_of

# A new tool or vendor is one line here. Tools are offered and vendors are asked in this order.
TOOLS = (
    "fathom.tools.earlier_run:EarlierRunTool",
    "fathom.tools.documents_tool:DocumentsTool",
    "fathom.tools.earlier_run:LibraryTool",
    "fathom.tools.search.web_search:WebSearchTool",
    "fathom.tools.search.web_extract:WebExtractTool",
    "fathom.tools.fetch_tool:FetchTool",
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
    "fathom.tools.compute:ComputeTool",
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
DEFAULT = "default"  # in the settings: the tools that a run uses by itself, in addition to named ones


@dataclass(frozen=True)
class Registry:
    """The tools and the search vendors, each as `module:class`, followed by other packages' tools and vendors."""

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

    @cached_property
    def groups(self) -> list[str]:
        """The groups of tools that are used only where they are named."""
        return list(dict.fromkeys(tool.group for tool in self.tools.values() if tool.group))

    def meant(self, name: str) -> list[type[Tool]]:
        """Return the tools for which a name of a tool or group in the settings stands; none for an unknown name."""
        return [tool for tool in self.tools.values() if name in names_of(tool)]

    def wanted(self, names: Sequence[str] | None) -> Sequence[type[SearchVendor]]:
        """Return the search vendors of these names, in their order; if there are none, all that need not be named.

        Raises:
            InvalidInput: there is no such vendor.
        """
        return named(names, self.vendors) if names else [one for one in self.vendors if not one.only_named]

    def configured_by(self, tool: type[Tool], search: Sequence[str] | None = None) -> Sequence[type[Configurable]]:
        """Return the classes whose variables configure a tool; one configured class is enough."""
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
    """Return the names of the tools a run may use: the ones asked for, else all that are configured and useful.

    A group stands for its configured tools, `default` for the tools of a run that asks for none. A `follow_up` gets the
    tools for follow-ups in any case, and a run the tool that a setting offers.

    Raises:
        InvalidInput: a tool that is asked for does not exist or is only for a follow-up, or a variable or a host to
            allow is not an address.
        MissingCredential: a tool that is asked for is not configured.
    """
    AllowList.parse([*settings.fetch_allow_hosts, *environment.fetch_allow])
    check_vendors(settings, environment, registry.vendors)
    scope = scope_of(settings, environment)
    usual = registry.groups if scope is AccessScope.public_sources else [DEFAULT]
    wanted = set(settings.tools or usual)
    asked = wanted - {DEFAULT}
    within = [tool for tool in registry.tools.values() if _fits(tool, scope, settings)]
    offered = [tool for tool in within if not tool.setting or getattr(settings, tool.setting)]
    able = [tool for tool in offered if follow_up or not tool.of_follow_ups]
    configured = [tool for tool in able if registry.is_configured(tool, environment, settings.search)]
    joins = scope is None and (DEFAULT in wanted or any(name.startswith(PREFIX) for name in wanted))
    of_servers = allowed_tools(environment) if joins else []
    for name in settings.tools or ():
        meant = registry.meant(name)
        if not meant and (problem := registry.plugins.broken.get(name)):
            raise InvalidInput(f"The tool {name} cannot be used: {problem}.", next_step="repair or remove the package")
        if scope and (name.startswith(PREFIX) or (meant and not any(tool.is_within(scope) for tool in meant))):
            raise outside(name, scope)
        if not meant and name not in of_servers:
            known = ", ".join([*(tool.name for tool in able if not tool.follows), *of_servers])
            groups = ", ".join([DEFAULT, *registry.groups])
            raise InvalidInput(f"There is no tool {name!r}.", next_step=f"tools: {known}; groups: {groups}")
        if meant and not any(tool in offered for tool in meant):
            own = meant[0].setting
            raise InvalidInput(f"The tool {name} needs the setting {own}.", next_step=f"set {own} instead: --{own}")
        if meant and not any(tool in able for tool in meant):
            raise InvalidInput(f"The tool {name} works in a follow-up only.", next_step="fathom ask RUN QUESTION")
        if meant and not any(tool in configured for tool in meant):
            needed = " or ".join(dict.fromkeys(registry.variables(tool, settings.search) for tool in meant))
            raise MissingCredential(f"The tool {name} is not configured.", next_step=f"set {needed}")
    usable = [t for t in configured if t.of_follow_ups or t.setting or not wanted.isdisjoint(names_of(t))]
    beside: list[type[Tool]] = [*usable, McpTool] if of_servers else usable
    called = [t for t in usable if not asked.isdisjoint(names_of(t)) or t.is_useful(settings, query, beside)]
    followed = {name for tool in called for name in (tool.name, tool.group) if name}
    chosen = [tool for tool in configured if tool in called or tool.follows in followed]
    for tool in chosen:
        check_addresses(registry.configured_by(tool, settings.search), environment)
    joined = of_servers if DEFAULT in wanted else [name for name in of_servers if name in wanted]
    return [*(tool.name for tool in chosen), *joined]


def _fits(tool: type[Tool], scope: AccessScope | None, settings: ResearchSettings) -> bool:
    """Whether a run of a scope may use a tool; without documents, a scope has none, not even the shipped ones."""
    lacks = scope and tool.scope is AccessScope.documents and not (settings.docs or settings.corpora)
    return tool.is_within(scope) and not lacks


def outside(name: str, scope: AccessScope) -> InvalidInput:
    """Return the error of a tool that a run of a scope must not use."""
    message = f"The tool {name} is outside the scope {scope}: {scope.about}."
    return InvalidInput(message, next_step="leave the tool out, or choose another --scope")


def check_scope(settings: ResolvedSettings, registry: Registry = REGISTRY) -> None:
    """Check that the tools of a run stay within its scope, and that it has something to search.

    Raises:
        InvalidInput: they do not, or there is nothing.
    """
    if (scope := settings.scope) is None:
        return
    chosen = [registry.tools.get(name) for name in settings.tools]
    for name, tool in zip(settings.tools, chosen, strict=True):
        if tool is None or not _fits(tool, scope, settings):
            raise outside(name, scope)
    if settings.library:
        raise outside("library", scope)
    if not any(tool and (tool.searches or tool.of_follow_ups) for tool in chosen):
        how = {
            AccessScope.web: "set a search key, as fathom doctor shows",
            AccessScope.public_sources: "choose some of its tools: --tools scholarly,facts",
        }
        message = f"A run of the scope {scope} ({scope.about}) has nothing to search."
        next_step = how.get(scope, "give documents: --docs PATH, --corpus NAME, or files with the question")
        raise InvalidInput(message, next_step=f"{next_step}; or choose another --scope")


def names_of(tool: type[Tool]) -> set[str]:
    """Return the names by which settings choose a tool.

    A source of some domains is used only if its own name is given: it needs no key, so otherwise every question would
    be sent to it.
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


GROUP = "fathom.tools"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


@dataclass(frozen=True)
class Plugins:
    """The tools and vendors of other packages. `packages` has the package of each by its name."""

    tools: list[type[Tool]] = field(default_factory=list)
    vendors: list[type[SearchVendor]] = field(default_factory=list)
    packages: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    """The reason why an entry cannot be used, by the entry's name, which for a tool is the tool's name."""


def load_plugins(taken: Collection[str]) -> Plugins:
    """Load the registered entries; `taken` holds the names that Fathom itself uses."""
    found = Plugins()
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (_package(entry), entry.name)):
        loaded, problem = _loaded(entry)
        if loaded is not None:
            problem = _problem(entry.name, loaded, {*taken, *found.packages})
        if problem or loaded is None:
            found.broken[clean_line(entry.name)] = f"{entry.value} of the package {_package(entry)}: {problem}"
            continue
        found.packages[loaded.name] = _package(entry)
        if issubclass(loaded, Tool):
            found.tools.append(loaded)
        else:
            found.vendors.append(loaded)
    return found


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "unknown"


def _loaded(entry: EntryPoint) -> tuple[type[Tool] | type[SearchVendor] | None, str]:
    """Return the class of an entry, or why there is none."""
    try:
        loaded = entry.load()
    except Exception as error:  # noqa: BLE001 - the code of others may fail in any way, and must not take us with it
        return None, clean_line(f"{type(error).__name__}: {error}")[:300]
    if not (inspect.isclass(loaded) and issubclass(loaded, Tool | SearchVendor)):
        return None, "it is not a Tool or SearchVendor"
    return loaded, ""


def _problem(entry: str, loaded: type[Tool] | type[SearchVendor], taken: Collection[str]) -> str:
    """Return the error of a class; empty if there is none."""
    if missing := sorted(loaded.__abstractmethods__):
        return f"it has no method {', '.join(missing)}"
    needed = ("name", "description") if issubclass(loaded, Tool) else ("name",)
    if missing := [name for name in needed if not isinstance(getattr(loaded, name, None), str)]:
        return f"it has no {' and no '.join(missing)}"
    if issubclass(loaded, Tool):
        if not _NAME.fullmatch(loaded.name) or loaded.name.startswith(PREFIX):
            return f"{loaded.name!r} is no name of a tool: use snake_case that does not begin with {PREFIX}"
        if loaded.name != entry:
            return f"the entry is called {entry}, but the tool {loaded.name}"
    if loaded.name in taken:
        return f"there is another {loaded.name}"
    return ""


def named(names: Sequence[str], vendors: Sequence[type[SearchVendor]]) -> list[type[SearchVendor]]:
    """Return the vendors of some names, each once and in their order, from these or over litellm.

    Raises:
        InvalidInput: there is no such vendor.
    """
    known = {vendor.key(): vendor for vendor in vendors}
    found: list[type[SearchVendor]] = []
    for name in dict.fromkeys(name.strip().lower() for name in names):
        provider = name.removeprefix(LITELLM)
        if name in known:
            found.append(known[name])
        elif name != provider and provider in PROVIDERS:
            found.append(vendor_of(provider))
        else:
            others = ", ".join([*known, *(f"{LITELLM}{provider}" for provider in PROVIDERS)])
            raise InvalidInput(f"The search vendor {name!r} does not exist.", next_step=f"vendors: {others}")
    return found


def check_vendors(settings: ResearchSettings, environment: Environment, vendors: Sequence[type[SearchVendor]]) -> None:
    """Check the vendors that the settings ask for, or the configured ones.

    Raises:
        InvalidInput: one does not exist, or has no known price while there is a cap in dollars.
        MissingCredential: one that is asked for is not configured.
    """
    named([*settings.search_prices], vendors)
    asked = named(settings.search or (), vendors)
    for vendor in asked:
        if missing := [name for name in vendor.variables if not environment.variables.get(name)]:
            message = f"The search vendor {vendor.key()} is not configured."
            raise MissingCredential(message, next_step=f"set {' and '.join(missing)}")
    if settings.budget.max_usd is None and not any(environment.cap(name) is not None for name in CAPS):
        return
    for name, price in prices_of(settings, environment, vendors).items():
        if price is None:
            raise InvalidInput(
                f"The price of a search by {name} is unknown, so a cap in dollars cannot be kept.",
                next_step=f"give its price with --search-price {name}=DOLLARS, or cap tokens instead: --max-tokens",
            )


def prices_of(
    settings: ResearchSettings, environment: Environment, vendors: Sequence[type[SearchVendor]]
) -> dict[str, Price]:
    """Return the price of a search by each vendor of a run, in their order."""
    search_budget = SearchBudget(prices=settings.search_prices)
    return {
        vendor.key(): search_budget.price(vendor.key(), vendor.price(settings.max_results))
        for vendor in _asked(settings, environment, vendors)
    }


def without_limits(
    settings: ResearchSettings, environment: Environment, vendors: Sequence[type[SearchVendor]]
) -> list[str]:
    """Return a line for each vendor of a run that cannot limit a search as the settings want it."""
    web = settings.web
    wanted = {"dates": bool(web.since or web.until), "region": bool(web.region), "safe": web.safe}
    lacking = {
        vendor.key(): [name for name, is_set in wanted.items() if is_set and name not in vendor.limits]
        for vendor in _asked(settings, environment, vendors)
    }
    return [f"{key} searches without these limits: {', '.join(names)}." for key, names in lacking.items() if names]


def _asked(
    settings: ResearchSettings, environment: Environment, vendors: Sequence[type[SearchVendor]]
) -> list[type[SearchVendor]]:
    usual = [one for one in vendors if one.is_configured(environment) and not one.only_named]
    return named(settings.search or (), vendors) or usual
