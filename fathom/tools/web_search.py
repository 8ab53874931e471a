"""Web search through Tavily: one call, one query."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, BeforeValidator

from fathom.errors import ToolRejected
from fathom.models import Source, SourceText, ToolCall, ToolOutput, ToolResult
from fathom.sources import canonical_url, source_ids
from fathom.tools.clean import clean_line, clean_text, clean_title
from fathom.tools.retry import retrying
from fathom.tools.tavily_client import is_page, tavily_client

__all__ = ["WebSearchTool"]

MAX_QUERY_CHARS = 400  # Tavily refuses more


def _finite(score: object) -> float:
    return float(score) if isinstance(score, int | float) and math.isfinite(score) else 0.0


class _Page(BaseModel):
    url: str | None = None
    title: str | None = None
    content: str | None = None
    raw_content: str | None = None
    score: Annotated[float, BeforeValidator(_finite)] = 0.0
    published_date: str | None = None


class _Answer(BaseModel):
    results: list[_Page]


class WebSearchTool:
    """Searches the web and reads the pages found, as far as the vendor delivers them.

    Args:
        key, url: the vendor's API key, and its address when it is not the public one.
        max_results: pages of one search.
    """

    name = "web_search"
    description = "Searches the web. Input: one search query of a few specific words."

    def __init__(self, key: str, url: str | None, max_results: int) -> None:
        self._key = key
        self._url = url
        self._max_results = max_results

    async def run(self, tool_input: str) -> ToolOutput:
        """Search for the input; a query of more than 400 characters is shortened at a word."""
        if not (query := clean_line(tool_input)):
            raise ToolRejected("The search query is empty.")
        query = textwrap.shorten(query, MAX_QUERY_CHARS, placeholder="") or query[:MAX_QUERY_CHARS]
        answer = await retrying(lambda: self._ask(query))
        return ToolOutput(results=_texts(answer.results))

    async def _ask(self, query: str) -> _Answer:
        async with tavily_client(self._key, self._url) as client:
            answer = await client.search(query, max_results=self._max_results, include_raw_content="markdown")
            return _Answer.model_validate(answer)

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return a call that reads the best pages of which the searches gave an excerpt only."""
        searches = [result.sources for result in results if result.call.tool == self.name]
        read = {canonical_url(s.url) for result in results for s in result.sources if s.full}
        best: dict[str, tuple[float, Source]] = {}
        for sources in searches:
            # Scores compare within one query only, so each is taken relative to the best of its query.
            top = max((s.score for s in sources), default=0.0) or 1.0
            for source in sources:
                page, score = canonical_url(source.url), source.score / top
                if page not in read and (page not in best or score > best[page][0]):
                    best[page] = (score, source)
        ranked = sorted(best.values(), key=lambda found: -found[0])[: self._max_results]
        return ToolCall(tool="web_extract", input=" ".join(s.url for _, s in ranked)) if ranked else None


def _texts(pages: Sequence[_Page]) -> list[SourceText]:
    """Return the pages that have an address and a text, each once, the best first."""
    kept: dict[str, tuple[str, _Page]] = {}
    for page in sorted(pages, key=lambda page: -page.score):
        url = clean_line(page.url or "")
        if is_page(url) and (page.raw_content or page.content):
            kept.setdefault(canonical_url(url), (url, page))
    ids = source_ids(url for url, _ in kept.values())
    texts: list[SourceText] = []
    for url, page in kept.values():
        whole, snippet = clean_text(page.raw_content or ""), clean_text(page.content or "")
        texts.append(
            SourceText(
                source_id=ids[url],
                url=url,
                title=clean_title(page.title or "") or url,
                kind="web",
                published=clean_line(page.published_date or ""),
                score=page.score,
                full=bool(whole.strip()),
                text=whole if whole.strip() else snippet,
                snippet=snippet,
            )
        )
    return [text for text in texts if text.text.strip()]
