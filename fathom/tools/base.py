"""The interfaces of tools and search vendors, and the context that a run offers them. The class of a tool or vendor
declares all that the rest of Fathom must know about it.

A search of the web is limited to a period, a region, and pages that are fit for everybody: the settings `web` limit
every search of a run, and a query limits itself with operators that people know from search engines:
`after:2024-03 before:2025-01-01 region:de`. The limits in a step's queries hold for the step. An operator that cannot
be read stays a word of the query.

Pages that could not be read in a run are not requested again and again. A page that can never be read, because it is
gone or is not text, is requested by one call only; a page that failed for a temporary reason, such as a busy server, by
two.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self, runtime_checkable

from pydantic import JsonValue

from fathom.config.environment import Environment
from fathom.config.form import ReadByTools, setting_of
from fathom.config.given import placed
from fathom.config.groups import AccessScope, WebSettings
from fathom.config.secrets import Scrubber
from fathom.config.settings import SETTINGS, Render, ResearchSettings, ResolvedSettings
from fathom.errors import FathomError, ToolError
from fathom.models import Holdings, Survey, ToolCall, ToolOutput, ToolResult
from fathom.storage.cache import TimedCache
from fathom.text.urls import canonical_url
from fathom.tools.earlier import EarlierRun, EarlierRuns
from fathom.tools.fetch.allow import AllowList
from fathom.tools.pages import WebPage
from fathom.tools.payment import SearchBudget

if TYPE_CHECKING:
    from fathom.tools.documents.corpus import UploadedCorpora
    from fathom.tools.fetch.render import Renderer
    from fathom.tools.fetch.web import WebReader

Limit = Literal["dates", "region", "safe"]

_OPERATOR = re.compile(r"(?<!\S)(after|before|region):(\d{4}(?:-\d{2}(?:-\d{2})?)?|[A-Za-z]{2})(?!\S)")
_FIRST = "1990-01-01"  # for vendors that want both ends of a period


class SearchLimits(NamedTuple):
    """The limits of one search, as far as a vendor knows them; dates are in ISO 8601, a region is an ISO 3166 code."""

    since: str = ""
    until: str = ""
    region: str = ""
    safe: bool = False

    def named(
        self, *, since: str = "", until: str = "", iso_period: str = "", google_period: str = "", region: str = ""
    ) -> dict[str, str]:
        """Return the limits that are set, by a vendor's own names for them; those without a name are left out."""
        named = (
            *((since, self.since), (until, self.until), (region, self.region.upper())),
            *((iso_period, self.iso_period), (google_period, self.google_period)),
        )
        return {name: value for name, value in named if name and value}

    @property
    def period(self) -> tuple[date, date] | None:
        """The first and the last day, if there is any."""
        if not (self.since or self.until):
            return None
        return date.fromisoformat(self.since or _FIRST), date.fromisoformat(self.until or date.today().isoformat())

    @property
    def iso_period(self) -> str:
        """The period as Brave and You.com write it; empty if there is none."""
        return "to".join(map(str, self.period)) if self.period else ""

    @property
    def google_period(self) -> str:
        """The period as Google writes it; empty if there is none."""
        if not self.period:
            return ""
        first, last = (f"{day:%m/%d/%Y}" for day in self.period)
        return f"cdr:1,cd_min:{first},cd_max:{last}"


ANYWHERE = SearchLimits()


def limited(query: str, web: WebSettings) -> tuple[str, SearchLimits]:
    """Return a query without its operators and with the suffixes of the settings, and its limits."""
    own: dict[str, str] = {}

    def read(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if (name == "region") is not value.isalpha():
            return found[0]
        try:
            own[name] = value.lower() if name == "region" else date.fromisoformat(f"{value}-01-01"[:10]).isoformat()
        except ValueError:
            return found[0]
        return ""

    words = [*_OPERATOR.sub(read, query).split(), *web.suffixes]
    since, until = own.get("after", web.since or ""), own.get("before", web.until or "")
    return " ".join(words), SearchLimits(since, until, own.get("region", web.region or ""), web.safe)


MOST_CALLS = 2  # calls that request a page which fails for a temporary reason


class UnreadablePages:
    """The pages that calls of one run could not read, by address, and why."""

    def __init__(self) -> None:
        self._errors: dict[str, list[FathomError]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def turn(self, urls: Iterable[str]) -> AsyncIterator[None]:
        """Let calls that read the same pages do so one after the other, so that each knows what failed before."""
        pages = sorted({canonical_url(url) for url in urls})  # in one order, so that no two wait for each other
        async with AsyncExitStack() as held:
            for page in pages:
                await held.enter_async_context(self._locks.setdefault(page, asyncio.Lock()))
            yield

    def why(self, url: str) -> FathomError | None:
        """Return why a page is not requested any more; None if it may be requested."""
        errors = self._errors.get(canonical_url(url), [])
        given_up = errors and (not errors[-1].retryable or len(errors) >= MOST_CALLS)
        return errors[-1] if given_up else None

    def add(self, url: str, error: FathomError) -> None:
        """Record that a page could not be read, unless only the money for it was lacking."""
        if isinstance(error, ToolError):
            self._errors.setdefault(canonical_url(url), []).append(error)


SEARCHES_SECONDS, PAGES_SECONDS = 15 * 60, 60 * 60


class Configurable(ABC):
    """Something that a run can use once its environment variables are set."""

    name: str  # snake_case for tools, because it is part of artifact names
    # All of them must be set. One that ends in `_URL` holds a web address; one that holds a secret ends in `_KEY`,
    # `_TOKEN`, `_SECRET` or `_PASSWORD`, by which it is kept out of all output.
    variables: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()  # further variables that it reads, such as another address of the service
    setup: str = ""  # instructions for getting the values, for `fathom doctor`

    @classmethod
    def is_configured(cls, environment: Environment) -> bool:
        """Return whether all of its variables are set."""
        return all(environment.variables.get(name) for name in cls.variables)

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Make one for a run; nothing is read and no connection made before the first call.

        A tool is also opened if its variables are not set: a replay, or a run that is resumed elsewhere, asks it for
        its follow-ups.
        """
        return cls()


class Tool(Configurable):
    """A tool of the researcher."""

    description: str  # one or two sentences for the model: what it is good for and what its input is
    searches: bool = False  # takes a search query and brings new evidence; without a model, only such tools are called
    network: bool = False  # needs the network
    fetchable: bool = False  # `fetch` may read the pages that its results name
    scope: AccessScope | None = None  # the scope of a run that has it beside runs without any
    setting: str = ""  # the setting that offers it beside the chosen tools; unset, it is never used
    of_follow_ups: bool = False  # works on the run that this one follows up on, and is offered to such a run only
    pays: bool = False  # each of its requests is made by `SearchBudget.pay`, before which the run's records are certain
    by_vendors: bool = False  # works through the search vendors, so one that is configured is enough
    # The fields that it knows, of `domains.toml` or other words: it is offered to steps that are about one of them, in
    # runs that choose it. One that knows all fields declares none.
    domains: tuple[str, ...] = ()
    group: str = ""  # a name by which `tools` chooses it together with others
    over_tables: bool = False  # offered to a model by `offer`, once the run has read tables
    follows: str = ""  # the tool or group whose results make the pipeline call this one, which no model is offered

    @classmethod
    def is_within(cls, scope: AccessScope | None) -> bool:
        """Return whether a run of a scope may use it; each may read again what the run itself has."""
        own = AccessScope.documents if scope is AccessScope.private else scope
        return scope is None or cls.scope is own or not (cls.searches or cls.network)

    @classmethod
    def is_useful(cls, settings: ResearchSettings, query: str, configured: Collection[type[Tool]]) -> bool:
        """Return whether a run that does not choose its tools can use it besides the configured tools."""
        return True

    @abstractmethod
    async def run(self, tool_input: str) -> ToolOutput:
        """Serve one call.

        Raises:
            ToolError: the call failed; the class says whether trying again can help.
        """

    async def offer(self, files: Sequence[str]) -> str:
        """Return its description for a model that knows some raw outputs of the run; empty: it is of no use there."""
        return self.description

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return a call that the results of one decision require, such as reading pages that a search left out."""
        return None

    async def survey(self, query: str, limit: int) -> Survey:
        """Return names and headings of local documents that come close to a query, and the files that are not read."""
        return Survey()

    async def holdings(self, words: Sequence[str]) -> Holdings | None:
        """Return the tool's holdings, and the words that occur nowhere in them; None if the tool does not search."""
        return Holdings(tool=self.name, where=["the web" if self.network else self.name]) if self.searches else None


class SearchVendor(Configurable):
    """Finds pages through the service at an address."""

    address: str
    usd: ClassVar[Decimal | None] = None  # maximum price of a search in US dollars; None: not known
    limits: ClassVar[tuple[Limit, ...]] = ()  # by which it can limit a search; it ignores the others
    only_named: ClassVar[bool] = False  # asked only where `search` names it: its key is most often set for models

    @classmethod
    def key(cls) -> str:
        """Return its name in settings, such as `you` for You.com."""
        return cls.name.lower().removesuffix(".com")

    @classmethod
    def price(cls, results: int) -> Decimal | None:
        """Return the maximum price of a search for a number of pages in US dollars; None if it is not known."""
        return cls.usd

    @abstractmethod
    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        """Make one request and return at most `limit` pages; `web_search` tries again and keeps the answers.

        `within` are the limits of the search.

        Raises:
            ToolError: the request failed; the class says whether trying again can help.
        """


@runtime_checkable
class PageReader(Protocol):
    """Reads pages in full; a search vendor that has this method is asked by `web_extract`."""

    name: str

    async def read(self, urls: Sequence[str]) -> tuple[list[WebPage], Mapping[str, FathomError]]:
        """Return the pages that could be read and, by URL, the reasons for the others; retries are up to the reader.

        Raises:
            ToolError: it failed for good, for all of them.
        """


class ArtifactReader(Protocol):
    """The raw outputs of one run."""

    async def list(self) -> list[str]:
        """Return the file names of the run's raw outputs, sorted."""

    async def read(self, name: str) -> ToolOutput:
        """Return a stored output."""


class NoArtifacts(ArtifactReader):
    """The raw outputs of a run that has read nothing."""

    async def list(self) -> list[str]:
        """Return no names."""
        return []

    async def read(self, name: str) -> ToolOutput:
        """Raise the error of a file that does not exist."""
        raise FileNotFoundError(name)


def read_by_tools(settings: ResolvedSettings) -> dict[str, JsonValue]:
    """Return the settings that tools read.

    An output is kept for other runs with the same key as long as these are the same.
    """
    read = settings.model_dump(mode="json", include=_read(ReadByTools.always))
    return read | settings.model_dump(mode="json", include=_read(ReadByTools.changed), exclude_defaults=True)


def _read(when: ReadByTools) -> dict[str, Any]:
    return placed({path: True for path, field in SETTINGS.items() if setting_of(field).tools is when})


@dataclass(frozen=True)
class RunContext:
    """A run as its tools see it."""

    settings: ResolvedSettings
    environment: Environment
    artifacts: ArtifactReader = field(default_factory=NoArtifacts)  # what the run has read so far
    query: str = ""  # the run's question, which may name pages to fetch
    configured_vendors: Sequence[type[SearchVendor]] = ()  # in the order in which they are asked
    fetchable: Sequence[str] = ()  # names of the tools whose results may be fetched
    search_budget: SearchBudget = field(default_factory=SearchBudget)  # the ledger that pays for searches and pages
    earlier: EarlierRun | None = None  # the run that it follows up on
    library: EarlierRuns | None = None  # the runs that its asker may read
    corpora: UploadedCorpora | None = None  # in the editions that it reads
    unreadable: UnreadablePages = field(default_factory=UnreadablePages)

    def variable(self, name: str) -> str:
        """Return an environment variable; empty if it is not set."""
        return self.environment.variables.get(name, "")

    @cached_property
    def vendors(self) -> list[SearchVendor]:
        """The search vendors, opened."""
        return [vendor.open(self) for vendor in self.configured_vendors]

    @cached_property
    def searches(self) -> TimedCache:
        """Searches of the last 15 minutes, of all runs."""
        return self._cache("searches", SEARCHES_SECONDS)

    @cached_property
    def pages(self) -> TimedCache:
        """Pages of the last hour, of all runs."""
        return self._cache("pages", PAGES_SECONDS)

    @property
    def kept_pages(self) -> EarlierRun | None:
        """The pages that the earlier run has read, unless the web is to be asked again."""
        return None if self.settings.fresh else self.earlier

    @cached_property
    def reader(self) -> WebReader:
        """Reads pages without a vendor."""
        from fathom.tools.fetch.archive import ADDRESS
        from fathom.tools.fetch.web import WebReader

        archive = self.variable("FATHOM_WAYBACK") or ADDRESS
        allowed = AllowList.parse(self.settings.fetch_allow_hosts)
        archive = "" if archive == "off" else archive
        contact, renderer = self.environment.contact, self.renderer
        return WebReader(allowed, self.pages, archive=archive, contact=contact, renderer=renderer)

    @cached_property
    def renderer(self) -> Renderer | str:
        """The run's browser, which starts when a page needs it; or why there is none, empty if none is wanted."""
        if self.settings.render is Render.never:
            return ""
        from fathom.tools.fetch.render import Renderer, find_browser

        found = find_browser(self.variable)
        return found if isinstance(found, str) else Renderer(found)

    async def aclose(self) -> None:
        """End the browser, if it was started."""
        if not isinstance(renderer := self.__dict__.get("renderer", ""), str):
            await renderer.aclose()

    def _cache(self, name: str, seconds: float) -> TimedCache:
        """Return a cache that keeps nothing if personal data must not be stored or the web is to be asked again."""
        off = self.settings.redact or self.settings.fresh
        clean = Scrubber(self.environment.secrets).text
        return TimedCache(None if off else self.environment.cache / name, seconds, clean)
