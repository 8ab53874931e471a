"""The `fetch` tool, which finds the page that a call means and reads it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Self

from fathom.config.groups import AccessScope
from fathom.config.settings import ResearchSettings
from fathom.errors import ToolError, ToolRejected
from fathom.models import Source, ToolOutput
from fathom.text.urls import canonical_url, source_ids, urls_in
from fathom.tools.base import ArtifactReader, RunContext, Tool, UnreadablePages
from fathom.tools.pages import WebPage, is_page, output

if TYPE_CHECKING:
    from fathom.tools.earlier import EarlierRun
    from fathom.tools.fetch.web import WebReader

_SOURCE_ID = re.compile(r"\[?(S[0-9a-f]{6,64})\]?")


class FetchTool(Tool):
    """Reads one page that a search of this run returned or that the question names."""

    name = "fetch"
    description = (
        "Reads one web page, all of it unless it is very long. Input: the id of a source from the notes, such as "
        "S1a2b3c, or a URL that the question names; it reads no other pages. Use it when a note lacks a detail that "
        "its page may hold."
    )
    network = True
    scope = AccessScope.web

    def __init__(
        self,
        artifacts: ArtifactReader,
        fetchable: Iterable[str],
        query: str,
        reader: WebReader,
        kept: EarlierRun | None = None,
        *,
        unreadable: UnreadablePages | None = None,
    ) -> None:
        self._artifacts = artifacts
        self._output_of_search = re.compile(rf"__({'|'.join(fetchable)})(__\d+)?\.(json|txt)\Z")
        self._named = urls_in(query)
        self._reader = reader
        self._kept = kept
        self._unreadable = unreadable or UnreadablePages()

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Read what the run's searches return."""
        return cls(run.artifacts, run.fetchable, run.query, run.reader, run.kept_pages, unreadable=run.unreadable)

    @classmethod
    def is_useful(cls, settings: ResearchSettings, query: str, configured: Collection[type[Tool]]) -> bool:
        """Return whether the run can have pages to fetch."""
        return any(tool.fetchable and tool.network for tool in configured) or bool(urls_in(query))

    async def run(self, tool_input: str) -> ToolOutput:
        """Read the page; for a work that a catalogue found, the open full text.

        Raises:
            ToolRejected: the run does not know the page, or it can never be read.
            ToolError: reading it failed this time.
        """
        source = meant(tool_input, await self._known())
        kept, _ = await self._kept.read([source.url]) if self._kept else ([], {})
        return output([as_found(kept[0] if kept else await self._page(address_of(source)), source)])

    async def _page(self, url: str) -> WebPage:
        async with self._unreadable.turn([url]):
            if known := self._unreadable.why(url):
                error: ToolError = ToolRejected(f"The page could not be read before: {known.message}")
            else:
                try:
                    return await self._reader.page(url)
                except ToolError as failed:
                    error = failed
                    self._unreadable.add(url, error)
        error.source = url
        raise error

    async def _known(self) -> dict[str, Source]:
        """Return the sources that may be read, by source id and by canonical address.

        Addresses are as the search or the user spelled them. The model's own spelling is never used: it could put data
        into the address and so send it out.
        """
        ids = source_ids(self._named)
        found = [Source(source_id=ids[url], url=url, title="", kind="web") for url in self._named]
        for name in await self._artifacts.list():
            if self._output_of_search.search(name):
                found += (await self._artifacts.read(name)).results
        known: dict[str, Source] = {}
        for source in found:
            known.setdefault(source.source_id, source)
            known.setdefault(canonical_url(source.url), source)
        return known


def meant(tool_input: str, known: Mapping[str, Source]) -> Source:
    """Return the source that an id or an address means.

    Raises:
        ToolRejected: it is not known.
    """
    wanted = tool_input.strip().strip("<>\"'")
    source_id = _SOURCE_ID.fullmatch(wanted)
    key = source_id[1] if source_id else canonical_url(wanted) if is_page(wanted) else ""
    if key not in known:
        raise ToolRejected(
            "fetch reads only pages that a search of this run returned or that the question names.",
            next_step="use the id of a source from the notes",
        )
    return known[key]


def address_of(source: Source) -> str:
    """Return the address at which a source is read: for a work its open full text, if there is one."""
    return (source.reference and source.reference.full_text) or source.url


def as_found(page: WebPage, source: Source) -> WebPage:
    """Return a page that was read for a source; for a work, under the work's own address, title and date."""
    if not source.reference:
        return page
    copy = page.reference.model_dump(include={"full_text", "archived"}) if page.reference else {}
    reference = source.reference.model_copy(update=copy)
    about = {"title": source.title, "published": source.published, "reference": reference}
    return page.model_copy(update={**about, "url": source.url})
