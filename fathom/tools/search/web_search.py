"""Web search: one call, one query, asked of one vendor after another until one finds something."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.config.settings import SourceRules
from fathom.errors import ToolError, ToolRejected
from fathom.models import Source, ToolCall, ToolOutput, ToolResult
from fathom.sources.rules import admitted, reading_bonus
from fathom.text.cleaning import clean_line
from fathom.text.urls import canonical_url
from fathom.tools.search.vendors import SearchVendor, as_failure, output


class WebSearchTool:
    """Searches the web and reads the pages found, as far as the vendor delivers them.

    Args:
        vendors: who is asked, in this order; the next one when one fails for good or finds nothing.
        max_results: pages of one search.
        rules: which domains are read, and which are read first.
    """

    name = "web_search"
    description = "Searches the web. Input: one search query of a few specific words."

    def __init__(self, vendors: Sequence[SearchVendor], max_results: int, rules: SourceRules | None = None) -> None:
        self._vendors = vendors
        self._max_results = max_results
        self._rules = rules or SourceRules()
        self._wanted = max_results * (2 if self._rules.allow or self._rules.block else 1)

    async def run(self, tool_input: str) -> ToolOutput:
        """Search for the input; the failures of vendors that another one stood in for are named in the output.

        Raises:
            ToolError: no vendor found anything, and the last one failed; the class is that of the last one's failure.
        """
        if not (query := clean_line(tool_input)):
            raise ToolRejected("The search query is empty.")
        if not self._vendors:  # a run that is resumed where the keys are not set
            raise ToolRejected("No vendor of web search is configured.", next_step="set TAVILY_API_KEY or SEARXNG_URL")
        failed: list[ToolError] = []
        for vendor in self._vendors:
            try:
                pages = await vendor.search(query, self._wanted)
            except ToolError as error:
                failed.append(error)
                continue
            if pages or vendor is self._vendors[-1]:
                ranked = sorted(pages, key=lambda page: -page.score)
                found = output(ranked, [as_failure(error, vendor.name) for error in failed])
                kept = [text for text in found.results if admitted(text, self._rules)][: self._max_results]
                return found.model_copy(update={"results": kept})
        messages, next_steps = " ".join(e.message for e in failed), [e.next_step for e in failed if e.next_step]
        raise type(failed[-1])(messages, next_step="; ".join(next_steps), retry_after=failed[-1].retry_after)

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return a call that reads the best pages of which the searches gave an excerpt only."""
        searches = [result.sources for result in results if result.call.tool == self.name]
        read = {canonical_url(s.url) for result in results for s in result.sources if s.full}
        best: dict[str, tuple[float, Source]] = {}
        for sources in searches:
            # Scores compare within one query only, so each is taken relative to the best of its query.
            top = max((s.score for s in sources), default=0.0) or 1.0
            for source in sources:
                page, score = canonical_url(source.url), source.score / top + reading_bonus(source, self._rules)
                if page not in read and (page not in best or score > best[page][0]):
                    best[page] = (score, source)
        ranked = sorted(best.values(), key=lambda found: -found[0])[: self._max_results]
        return ToolCall(tool="web_extract", input=" ".join(s.url for _, s in ranked)) if ranked else None
