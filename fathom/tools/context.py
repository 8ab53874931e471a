"""What a run offers to the tools that are opened for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber
from fathom.config.settings import ResolvedSettings
from fathom.models import ToolOutput
from fathom.storage.cache import TimedCache
from fathom.tools.fetch.allow import AllowList
from fathom.tools.search.vendor import SearchVendor

if TYPE_CHECKING:
    from fathom.tools.fetch.web import WebReader

SEARCHES_SECONDS, PAGES_SECONDS = 15 * 60, 60 * 60


class ArtifactReader(Protocol):
    """The raw outputs of one run."""

    async def list(self) -> list[str]:
        """Return the file names of the run's raw outputs, sorted."""

    async def read(self, name: str) -> ToolOutput:
        """Return a stored output."""


@dataclass(frozen=True)
class RunContext:
    """A run as its tools see it."""

    settings: ResolvedSettings
    environment: Environment
    artifacts: ArtifactReader  # what the run has read so far
    query: str  # the run's question
    configured_vendors: Sequence[type[SearchVendor]]  # in the order in which they are asked
    fetchable: Sequence[str]  # names of the tools whose results may be fetched

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

    @cached_property
    def reader(self) -> WebReader:
        """Reads pages without a vendor."""
        from fathom.tools.fetch.web import WebReader

        return WebReader(AllowList.parse(self.settings.fetch_allow_hosts), self.pages)

    def _cache(self, name: str, seconds: float) -> TimedCache:
        """Return a cache that keeps nothing if personal data must not be stored or the web is to be asked again."""
        off = self.settings.redact or self.settings.fresh
        clean = Scrubber(self.environment.secrets).text
        return TimedCache(None if off else self.environment.cache / name, seconds, clean)
