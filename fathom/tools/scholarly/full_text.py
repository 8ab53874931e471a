"""Reading the open full texts of the works that catalogues found. The pipeline calls it after them; no model does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from fathom.config.groups import AccessScope
from fathom.models import ToolCall, ToolFailure, ToolOutput, ToolResult
from fathom.sources.domains import reading_bonus
from fathom.tools.base import RunContext
from fathom.tools.fetch_tool import FetchTool, address_of, as_found, meant
from fathom.tools.pages import output


class FullTextTool(FetchTool):
    """Reads the open full texts of works; each counts as the source that was found."""

    name = "full_text"
    description = "Reads the open full texts of scholarly works. Input: their source ids, separated by spaces."
    follows = "scholarly"
    scope = AccessScope.public_sources

    def __init__(self, run: RunContext) -> None:
        super().__init__(run.artifacts, run.fetchable, run.query, run.reader, unreadable=run.unreadable)
        self._most, self._rules = run.settings.max_results, run.settings.sources

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Read at most as many works as a search finds."""
        return cls(run)

    async def run(self, tool_input: str) -> ToolOutput:
        """Read the works; the output's failures name the problem of each work that failed, whose abstract remains."""
        known = await self._known()
        works = {address_of(source): source for source in (meant(each, known) for each in tool_input.split())}
        async with self._unreadable.turn(works):
            pages, failed = await self._reader.read([url for url in works if not self._unreadable.why(url)])
            for url, error in failed.items():
                self._unreadable.add(url, error)
        failures = [
            ToolFailure(code=error.code, message=error.message, replaced_by="The catalogue's entry")
            for error in failed.values()
        ]
        return output([as_found(page, works[page.url]) for page in pages], failures)

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return a call that reads the best works that have an open full text."""
        read = {source.source_id for result in results for source in result.sources if source.full}
        best: dict[str, float] = {}
        for source in (source for result in results for source in result.sources):
            if source.reference and source.reference.full_text and source.source_id not in read:
                score = source.score + reading_bonus(source, self._rules)
                best[source.source_id] = max(score, best.get(source.source_id, 0.0))
        ranked = sorted(best, key=lambda source_id: -best[source_id])[: self._most]
        return ToolCall(tool=self.name, input=" ".join(ranked)) if ranked else None
