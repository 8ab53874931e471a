"""The `fetch` tool: which page a call means, and the way to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fathom.errors import ToolRateLimited, ToolRejected, ToolTimeout, ToolUnavailable
from fathom.models import SourceText, ToolCall, ToolOutput, ToolResult
from fathom.sources import canonical_url, source_ids, urls_in
from fathom.tools.artifacts import ArtifactReader
from fathom.tools.cache import TimedCache
from fathom.tools.fetch.allow import AllowList, check_url
from fathom.tools.retry import retrying, seconds_to_wait
from fathom.tools.tavily_client import is_page

if TYPE_CHECKING:
    import httpcore

    from fathom.tools.fetch.client import Answer, Client, TimeAllowance
    from fathom.tools.fetch.manners import Robots, Turns
    from fathom.tools.fetch.page import Page

__all__ = ["FetchTool"]

CACHE_SECONDS = 3_600.0
MAX_REDIRECTS = 5
_SOURCE_ID = re.compile(r"\[?(S[0-9a-f]{6,64})\]?")
_SEARCH = re.compile(r"__web_search(__\d+)?\.json\Z")


class FetchTool:
    """Reads one page that a search of this run returned or that the question names.

    Args:
        artifacts: the run's raw outputs, which tell what its searches returned.
        query: the run's question.
        allowed: private hosts that may be read.
        cache: where pages and robots.txt are kept for an hour; None: nowhere.
        network: opens the connections; by default one that reaches permitted addresses only.
    """

    name = "fetch"
    description = (
        "Reads one web page in full. Input: the id of a source from the notes, such as S1a2b3c, or a URL that the "
        "question names. Use it when a note lacks what its page may hold; no other addresses are read."
    )

    def __init__(
        self,
        artifacts: ArtifactReader,
        query: str,
        allowed: AllowList,
        cache: Path | None,
        network: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._artifacts = artifacts
        self._named = urls_in(query)
        self._allowed = allowed
        self._cache = TimedCache(cache, CACHE_SECONDS) if cache else None
        self._network = network
        self._web: _Web | None = None

    async def run(self, tool_input: str) -> ToolOutput:
        """Read the page.

        Raises:
            ToolRejected: no page this run knows, or one that cannot be read however often it is asked for.
            ToolError: the page failed to arrive.
        """
        url = await self._known(tool_input)
        page = await self._page(url)
        text = SourceText(
            source_id=source_ids([url])[url],
            url=url,
            title=page.title or url,
            kind="web",
            published=page.published,
            text=page.text,
        )
        return ToolOutput(results=[text])

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return None: the whole page was read."""
        return None

    async def _known(self, tool_input: str) -> str:
        """Return the address that the input stands for, as the search or the user spelled it.

        A model's own spelling is never used: what it adds to an address could carry something out.
        """
        wanted = tool_input.strip().strip("<>\"'")
        known: dict[str, str] = {}
        for url in self._named:
            known.setdefault(canonical_url(url), url)
        known.update({source_id: url for url, source_id in source_ids(known.values()).items()})
        for name in await self._artifacts.list():
            if _SEARCH.search(name):
                for source in (await self._artifacts.read(name)).results:
                    known.setdefault(source.source_id, source.url)
                    known.setdefault(canonical_url(source.url), source.url)
        source_id = _SOURCE_ID.fullmatch(wanted)
        key = source_id[1] if source_id else canonical_url(wanted) if is_page(wanted) else ""
        if key not in known:
            raise ToolRejected(
                "fetch reads pages that a search of this run returned or that the question names, no others.",
                next_step="use the id of a source from the notes",
            )
        return known[key]

    async def _page(self, url: str) -> Page:
        from fathom.tools.fetch.page import Page

        key = f"page {url} {self._allowed}"  # what one run may read, another may not
        if self._cache and (kept := self._cache.load(key, Page)):
            return kept
        self._web = self._web or _Web(self._allowed, self._cache, self._network)
        page = await self._web.read(url)
        if self._cache:
            self._cache.put(key, page.model_dump_json())
        return page


class _Web:
    """The way to pages: permission, turn, request, redirect, and the same again."""

    def __init__(
        self, allowed: AllowList, cache: TimedCache | None, network: httpcore.AsyncNetworkBackend | None
    ) -> None:
        from fathom.tools.fetch.client import Client
        from fathom.tools.fetch.manners import Robots, Turns
        from fathom.tools.fetch.network import GuardedBackend

        self._allowed = allowed
        self._client: Client = Client(network or GuardedBackend(allowed))
        self._robots: Robots = Robots(self._client, allowed, cache)
        self._turns: Turns = Turns()

    async def read(self, url: str) -> Page:
        from fathom.tools.fetch.client import TimeAllowance
        from fathom.tools.fetch.reading import read_apart

        time = TimeAllowance()
        answer = await retrying(lambda: self._arrive(url, time))
        return await read_apart(answer)

    async def _arrive(self, address: str, time: TimeAllowance) -> Answer:
        """Follow at most five redirects to an answer with a page."""
        url = check_url(address, self._allowed)
        for _ in range(MAX_REDIRECTS + 1):
            async with time.spend():
                await self._robots.check(url)
            async with self._turns.turn(url.host), time.spend():
                answer = await self._client.get(url)
            if (target := answer.redirect) is None:
                _raise_failure(answer)
                return answer
            url = check_url(target, self._allowed)
        raise ToolRejected(f"The page redirects more than {MAX_REDIRECTS} times.")


def _raise_failure(answer: Answer) -> None:
    status, wait = answer.status, seconds_to_wait(answer.headers.get("retry-after"))
    message = f"{answer.url.host[:100]} answered {status}."
    if status == 429:
        raise ToolRateLimited(message, retry_after=wait)
    if status == 408:
        raise ToolTimeout(message)
    if status >= 500:
        raise ToolUnavailable(message, retry_after=wait)
    if status != 200:
        raise ToolRejected(message)
