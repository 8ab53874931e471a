"""Web search: one call, one query, asked of one vendor after another until one finds something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from fathom.config.groups import SourceRules
from fathom.errors import ToolError, ToolRejected
from fathom.models import Source, ToolCall, ToolFailure, ToolOutput, ToolResult
from fathom.sources.rules import admitted, reading_bonus
from fathom.storage.cache import TimedCache
from fathom.text.cleaning import clean_line
from fathom.text.urls import canonical_url
from fathom.tools.base import RunContext, SearchVendor, Tool
from fathom.tools.http import retrying
from fathom.tools.pages import WebPage, output, remembered


class WebSearchTool(Tool):
    """Searches the web and reads the pages found, if the vendor delivers them.

    The next vendor is asked when one fails for good or finds nothing. The rules say which domains are read, and which
    are read first.
    """

    name = "web_search"
    description = "Searches the web. Input: one search query of a few specific words."
    searches = network = fetchable = by_vendors = True

    def __init__(
        self, vendors: Sequence[SearchVendor], searches: TimedCache, max_results: int, rules: SourceRules | None = None
    ) -> None:
        self._vendors = vendors
        self._searches = searches
        self._max_results = max_results
        self._rules = rules or SourceRules()
        self._wanted = max_results * (2 if self._rules.allow or self._rules.block else 1)

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Search with the vendors that are configured."""
        return cls(run.vendors, run.searches, run.settings.max_results, run.settings.sources)

    async def run(self, tool_input: str) -> ToolOutput:
        """Search for the input; the output names the failures of vendors that another one replaced.

        Raises:
            ToolError: no vendor found anything, and the last one failed; the class is that of the last failure.
        """
        if not (query := clean_line(tool_input)):
            raise ToolRejected("The search query is empty.")
        failed: list[ToolError] = []
        for vendor in self._vendors:
            try:
                pages = await self._ask(vendor, query)
            except ToolError as error:
                failed.append(error)
                continue
            if pages or vendor is self._vendors[-1]:
                failures = [ToolFailure(code=e.code, message=e.message, replaced_by=vendor.name) for e in failed]
                found = output(sorted(pages, key=lambda page: -page.score), failures)
                kept = [text for text in found.results if admitted(text, self._rules)][: self._max_results]
                return found.model_copy(update={"results": kept})
        messages, next_steps = " ".join(e.message for e in failed), [e.next_step for e in failed if e.next_step]
        raise type(failed[-1])(messages, next_step="; ".join(next_steps), retry_after=failed[-1].retry_after)

    async def _ask(self, vendor: SearchVendor, query: str) -> list[WebPage]:
        key = f"search {vendor.name} {vendor.address} {self._wanted} {query}"
        return await remembered(
            self._searches, key, lambda: retrying(lambda: vendor.search(query, self._wanted), vendor.name)
        )

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return a call that reads the best pages for which the searches returned only an excerpt."""
        read = {canonical_url(s.url) for result in results for s in result.sources if s.full}
        best: dict[str, tuple[float, Source]] = {}
        for sources in (result.sources for result in results if result.call.tool == self.name):
            # Scores compare within one query only, so each is taken relative to the best of its query.
            top = max((s.score for s in sources), default=0.0) or 1.0
            for source in sources:
                page, score = canonical_url(source.url), source.score / top + reading_bonus(source, self._rules)
                if page not in read and (page not in best or score > best[page][0]):
                    best[page] = (score, source)
        ranked = sorted(best.values(), key=lambda found: -found[0])[: self._max_results]
        return ToolCall(tool="web_extract", input=" ".join(s.url for _, s in ranked)) if ranked else None
