"""The `fetch` tool: which page a call means."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Self

from fathom.config.settings import ResearchSettings
from fathom.errors import ToolRejected
from fathom.models import ToolOutput
from fathom.text.urls import canonical_url, source_ids, urls_in
from fathom.tools.base import ArtifactReader, RunContext, Tool
from fathom.tools.pages import is_page, output

if TYPE_CHECKING:
    from fathom.tools.earlier import EarlierRun
    from fathom.tools.fetch.web import WebReader

_SOURCE_ID = re.compile(r"\[?(S[0-9a-f]{6,64})\]?")


class FetchTool(Tool):
    """Reads one page that a search of this run returned or that the question names."""

    name = "fetch"
    description = (
        "Reads one web page in full. Input: the id of a source from the notes, such as S1a2b3c, or a URL that the "
        "question names; it reads no other pages. Use it when a note lacks a detail that its page may hold."
    )
    network = True

    def __init__(
        self,
        artifacts: ArtifactReader,
        fetchable: Iterable[str],
        query: str,
        reader: WebReader,
        kept: EarlierRun | None = None,
    ) -> None:
        self._artifacts = artifacts
        self._output_of_search = re.compile(rf"__({'|'.join(fetchable)})(__\d+)?\.(json|txt)\Z")
        self._named = urls_in(query)
        self._reader = reader
        self._kept = kept

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Read what the run's searches return."""
        return cls(run.artifacts, run.fetchable, run.query, run.reader, run.kept_pages)

    @classmethod
    def is_useful(cls, settings: ResearchSettings, query: str, configured: Collection[type[Tool]]) -> bool:
        """Return whether there can be a page to fetch."""
        return any(tool.fetchable and tool.network for tool in configured) or bool(urls_in(query))

    async def run(self, tool_input: str) -> ToolOutput:
        """Read the page.

        Raises:
            ToolRejected: the run does not know the page, or it can never be read.
            ToolError: reading it failed this time.
        """
        url = await self._known(tool_input)
        kept, _ = await self._kept.read([url]) if self._kept else ([], {})
        return output(kept or [await self._reader.page(url)])

    async def _known(self, tool_input: str) -> str:
        """Return the address that the input means, as the search or the user spelled it.

        The model's own spelling is never used: it could put data into the address and so send it out.
        """
        wanted = tool_input.strip().strip("<>\"'")
        known = {canonical_url(url): url for url in reversed(self._named)}
        known.update({source_id: url for url, source_id in source_ids(known.values()).items()})
        for name in await self._artifacts.list():
            if self._output_of_search.search(name):
                for source in (await self._artifacts.read(name)).results:
                    known.setdefault(source.source_id, source.url)
                    known.setdefault(canonical_url(source.url), source.url)
        source_id = _SOURCE_ID.fullmatch(wanted)
        key = source_id[1] if source_id else canonical_url(wanted) if is_page(wanted) else ""
        if key not in known:
            raise ToolRejected(
                "fetch reads only pages that a search of this run returned or that the question names.",
                next_step="use the id of a source from the notes",
            )
        return known[key]
