"""The tool that searches the texts of an earlier run: the first corpus of a run that follows up on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from fathom.config.groups import SourceRules
from fathom.errors import ToolRejected
from fathom.evidence.stored import StoredText
from fathom.models import ToolOutput
from fathom.retrieval.identifiers import borne_by, naming
from fathom.retrieval.ranking import titled
from fathom.retrieval.relevance import best_places
from fathom.sources.domains import admitted
from fathom.tools.base import RunContext, Tool
from fathom.tools.earlier import EarlierRun

NEAR = 0.4  # of the score of the closest text, which another must have: a model reads each again for what is new


class EarlierRunTool(Tool):
    """Searches the texts that the earlier run of a follow-up has read."""

    name = "earlier_run"
    description = (
        "Searches all that was read for the earlier report. Input: one search query of a few specific words. Each step "
        "begins with it; ask it again only in other words."
    )
    fetchable = of_follow_ups = True

    def __init__(self, earlier: EarlierRun | None, max_results: int, rules: SourceRules) -> None:
        self._earlier = earlier
        self._max_results = max_results
        self._rules = rules

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Search the texts of the earlier run."""
        return cls(run.earlier, run.settings.max_results, run.settings.sources)

    async def run(self, tool_input: str) -> ToolOutput:
        """Return the texts closest to the query, as the earlier run read them."""
        if not self._earlier:
            raise ToolRejected("This run follows up on no other.", next_step="fathom ask RUN QUESTION")
        texts = [text for text in await self._earlier.texts() if admitted(text.source, self._rules)]
        return await asyncio.to_thread(closest, tool_input, texts, self._max_results)


def closest(query: str, texts: Sequence[StoredText], most: int) -> ToolOutput:
    """Return the texts closest to a query, one of each source, with the time at which the oldest was read."""
    places = best_places(query, [titled(text.source_text()) for text in texts])
    sources = [text.source for text in texts]
    named = naming(query, ((s.source_id, borne) for s in sources for borne in borne_by(s.title, s.url)))
    worth = {
        number: (named.get(source.source_id, 0), places[number][0].score if number in places else 0.0)
        for number, source in enumerate(sources)
        if number in places or source.source_id in named
    }
    least = NEAR * max((score for _, score in worth.values()), default=0.0)
    best: dict[str, StoredText] = {}
    for number in sorted(worth, key=lambda number: worth[number], reverse=True):
        by_name, score = worth[number]
        if by_name or score >= least:
            best.setdefault(texts[number].source.source_id, texts[number])
    chosen = list(best.values())[:most]
    oldest = min((text.retrieved for text in chosen if text.retrieved), default="")
    return ToolOutput(results=[text.source_text() for text in chosen], retrieved=oldest)
