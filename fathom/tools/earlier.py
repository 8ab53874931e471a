"""What an earlier run has read: the first corpus of a run that follows up on it.

Its texts keep their source, so a follow-up cites the page or document itself; and as it stores what it takes over with
its own raw outputs, it can be checked when the earlier run is gone. That holds for the run before that one, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from fathom.config.groups import SourceRules
from fathom.errors import StoreError, ToolError, ToolRejected
from fathom.evidence.provenance import PROVENANCE, read, results_of
from fathom.evidence.stored import StoredText, stored_texts
from fathom.models import ToolOutput
from fathom.retrieval.identifiers import borne_by, naming
from fathom.retrieval.narrowing import narrow
from fathom.retrieval.relevance import best_places
from fathom.retrieval.titles import titled
from fathom.sources.rules import admitted
from fathom.storage.store import RunFolder
from fathom.text.urls import canonical_url
from fathom.tools.base import RunContext, Tool
from fathom.tools.pages import WebPage

MOST_TOKENS = 3_500  # of one text, which is returned whole up to then


class EarlierRun:
    """The texts of a finished run. As a reader of pages, it gives those that the run has read in full."""

    name = "earlier_run"

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder.folder
        self._folder = folder
        self._texts: list[StoredText] | None = None
        self._reading = asyncio.Lock()

    async def texts(self) -> list[StoredText]:
        """Return its texts, each once; of a source that was read in full, that text only.

        Raises:
            ToolRejected: its files are gone or damaged.
        """
        async with self._reading:
            if self._texts is None:
                try:
                    record, _ = read(await self._folder.load(PROVENANCE))
                    names = sorted({call.artifact_file for call in record.calls if call.artifact_file})
                    files = dict(zip(names, await asyncio.gather(*map(self._folder.load, names)), strict=True))
                except (FileNotFoundError, StoreError) as error:
                    raise ToolRejected(
                        f"The earlier run cannot be read any more: {error}.",
                        next_step="restore its folder, or ask the question by itself",
                    ) from error
                found = stored_texts(files, results_of(record))
                whole = {text.source.source_id for text in found if text.source.full}
                self._texts = [text for text in found if text.source.full or text.source.source_id not in whole]
            return self._texts

    async def read(self, urls: Sequence[str]) -> tuple[list[WebPage], dict[str, ToolError]]:
        """Return those of some pages that it has read in full; the others did not fail here."""
        try:
            texts = await self.texts()
        except ToolRejected:  # the web has them
            texts = []
        whole = {canonical_url(text.source.url): text for text in texts if text.source.full}
        known = ((url, whole.get(canonical_url(url))) for url in urls)
        pages = [
            WebPage(
                url=url,
                title=text.source.title,
                published=text.source.published,
                whole=text.text,
                fields=text.source.fields,
                kept_since=text.retrieved,
            )
            for url, text in known
            if text and text.source.kind == "web"
        ]
        return pages, {}


class EarlierRunTool(Tool):
    """Searches what the run that this one follows up on has read."""

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
        """Search the texts of the run's earlier one."""
        return cls(run.earlier, run.settings.max_results, run.settings.sources)

    async def run(self, tool_input: str) -> ToolOutput:
        """Return the texts that are closest to the query: small ones whole, of long ones the best passages."""
        if not self._earlier:
            raise ToolRejected("This run follows up on no other.", next_step="fathom ask RUN QUESTION")
        texts = [text for text in await self._earlier.texts() if admitted(text.source, self._rules)]
        return await asyncio.to_thread(_closest, tool_input, texts, self._max_results)


def _closest(query: str, texts: Sequence[StoredText], most: int) -> ToolOutput:
    places = best_places(query, [titled(text.source_text()) for text in texts])
    sources = [text.source for text in texts]
    named = naming(query, ((s.source_id, borne) for s in sources for borne in borne_by(s.title, s.url)))
    worth = {
        number: (named.get(source.source_id, 0), places[number][0].score if number in places else 0.0)
        for number, source in enumerate(sources)
        if number in places or source.source_id in named
    }
    best: dict[str, StoredText] = {}
    for number in sorted(worth, key=lambda number: worth[number], reverse=True):
        best.setdefault(texts[number].source.source_id, texts[number])
    chosen = list(best.values())[:most]
    shown = [part for text in chosen for part in narrow([text.source_text()], query, MOST_TOKENS).texts]
    return ToolOutput(results=shown, retrieved=min((text.retrieved for text in chosen if text.retrieved), default=""))
