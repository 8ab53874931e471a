"""Web search: one call, one query, asked of one vendor after another until one finds something, or of all at once.

The lists of several vendors, whose scores cannot be compared, are joined into one. Each page gets the sum of 1 /
(60 + its rank) over the lists that have it: reciprocal rank fusion, as in G. V. Cormack, C. L. A. Clarke and S.
Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods", SIGIR 2009. A page that
several vendors found comes before one that a single vendor put first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from fathom.config.groups import AccessScope, SourceRules, WebSettings
from fathom.config.settings import SearchMode
from fathom.errors import BudgetExceeded, FathomError, ToolError, ToolRejected
from fathom.models import Source, ToolCall, ToolFailure, ToolOutput, ToolResult
from fathom.sources.domains import admitted, reading_bonus
from fathom.storage.cache import TimedCache
from fathom.text.plain import clean_line
from fathom.text.urls import canonical_url
from fathom.tools.base import ANYWHERE, RunContext, SearchLimits, SearchVendor, Tool, limited
from fathom.tools.http import retrying
from fathom.tools.pages import WebPage, is_page, output, remembered
from fathom.tools.payment import SearchBudget


class _Answer(NamedTuple):
    """The results of a vendor, or the reason why it could not search."""

    vendor: str
    pages: list[WebPage]
    error: FathomError | None = None


class WebSearchTool(Tool):
    """Searches the web and reads the pages found, if the vendor delivers them.

    The next vendor is asked when one fails for good or finds nothing, unless all are asked together. The rules say
    which domains are read, and which are read first.
    """

    name = "web_search"
    description = (
        "Searches the web. Input: one search query of a few specific words; if only a period or a country is wanted, "
        "also after:2024-01-31, before:2025-12-31 or region:de."
    )
    searches = network = fetchable = by_vendors = pays = True
    scope = AccessScope.web

    def __init__(
        self,
        vendors: Sequence[SearchVendor],
        searches: TimedCache,
        max_results: int,
        rules: SourceRules | None = None,
        *,
        mode: SearchMode = SearchMode.first,
        search_budget: SearchBudget | None = None,
        web: WebSettings | None = None,
    ) -> None:
        self._vendors = vendors
        self._searches = searches
        self._max_results = max_results
        self._rules = rules or SourceRules()
        self._wanted = max_results * (2 if self._rules.allow or self._rules.block else 1)
        self._together = mode is SearchMode.all
        self._search_budget = search_budget or SearchBudget()
        self._web = web or WebSettings()

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Search with the vendors that are configured."""
        wanted = run.settings
        return cls(
            run.vendors,
            run.searches,
            wanted.max_results,
            wanted.sources,
            mode=wanted.search_mode,
            search_budget=run.search_budget,
            web=wanted.web,
        )

    async def run(self, tool_input: str) -> ToolOutput:
        """Search for the input; the output names the failures of vendors that others replaced.

        Raises:
            BudgetExceeded: no vendor found anything, and the last one that failed costs more than is left.
            ToolError: no vendor found anything, and the last vendor failed, or one of several asked together; the class
                is the last failure's.
        """
        if not (query := clean_line(tool_input)):
            raise ToolRejected("The search query is empty.")
        answers = await self._answers(*limited(query, self._web))
        found = {answer.vendor: answer.pages for answer in answers if answer.pages}
        errors = [answer.error for answer in answers if answer.error]
        if errors and not found and (self._together or answers[-1].error):
            raise _joined(errors)
        instead = ", ".join(found) or answers[-1].vendor
        failures = [ToolFailure(code=e.code, message=e.message, replaced_by=instead) for e in errors]
        ranked = _ranked(found)
        result = output([each.page for each in ranked], failures)
        kept = [text for text in result.results if admitted(text, self._rules)][: self._max_results]
        by = {canonical_url(each.page.url): each.vendors for each in ranked} if self._together else {}
        found_by = {text.source_id: vendors for text in kept if (vendors := by.get(canonical_url(text.url)))}
        return result.model_copy(update={"results": kept, "found_by": found_by})

    async def _answers(self, query: str, within: SearchLimits) -> list[_Answer]:
        """Ask all vendors together, or each in turn until one finds something."""
        if self._together:
            return list(await asyncio.gather(*(self._ask(vendor, query, within) for vendor in self._vendors)))
        answers: list[_Answer] = []
        for vendor in self._vendors:
            answers.append(await self._ask(vendor, query, within))
            if answers[-1].pages:
                break
        return answers

    async def _ask(self, vendor: SearchVendor, query: str, within: SearchLimits) -> _Answer:
        price = self._search_budget.price(vendor.key(), vendor.price(self._wanted))

        async def attempt() -> list[WebPage]:
            return await self._search_budget.pay(
                f"search:{vendor.key()}", price, lambda: vendor.search(query, self._wanted, within)
            )

        key = f"search {vendor.name} {vendor.address} {self._wanted} {query}"
        if within != ANYWHERE:
            key += f" {tuple(within)}"
        try:
            pages = await remembered(self._searches, key, lambda: retrying(attempt, vendor.key()))
        except (ToolError, BudgetExceeded) as error:
            return _Answer(vendor.name, [], error)
        return _Answer(vendor.name, pages)

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return a call that reads the best pages for which the searches returned only an excerpt.

        The results of all queries of the decision are ranked together.
        """
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


def _ranked(found: dict[str, list[WebPage]]) -> list[Fused]:
    """Return the pages, the best first: by the scores of the only vendor, if it gives any, else by their ranks."""
    if len(found) == 1 and any(page.score for pages in found.values() for page in pages):
        [(vendor, pages)] = found.items()
        return [Fused(page, [vendor]) for page in sorted(pages, key=lambda page: -page.score)]
    return fuse(found)


def _joined(errors: Sequence[FathomError]) -> FathomError:
    """Return the failures as one, of the class of the last."""
    last, next_steps = errors[-1], [error.next_step for error in errors if error.next_step]
    message = " ".join(error.message for error in errors)
    return type(last)(message, next_step="; ".join(next_steps), retry_after=last.retry_after)


K = 60  # the constant of the paper


class Fused(NamedTuple):
    """A page as all vendors together know it, and their names."""

    page: WebPage
    vendors: list[str]


def fuse(found: Mapping[str, Sequence[WebPage]]) -> list[Fused]:
    """Return each page once, the best first, with its score; the lists by vendor have the best first.

    Among pages of the same score, pages of earlier vendors come first.
    """
    scores: dict[str, float] = {}
    copies: dict[str, dict[str, WebPage]] = {}  # of a page, by vendor
    for vendor, pages in found.items():
        ranked = dict.fromkeys(canonical_url(page.url) for page in pages if is_page(page.url))
        for rank, address in enumerate(ranked, 1):
            scores[address] = scores.get(address, 0.0) + 1 / (K + rank)
        for page in pages:
            if (address := canonical_url(page.url)) in ranked:
                copies.setdefault(address, {}).setdefault(vendor, page)
    best = sorted(scores, key=lambda address: -scores[address])
    return [Fused(_merged([*copies[a].values()], round(scores[a], 9)), [*copies[a]]) for a in best]


def _merged(copies: Sequence[WebPage], score: float) -> WebPage:
    """Return the copy with the longest text, with what it lacks from the others."""
    richest = max(copies, key=lambda page: (len(page.whole), len(page.excerpt)))
    names = ("title", "published", "excerpt")
    lacking = {name: next(filter(None, (getattr(c, name) for c in (richest, *copies))), "") for name in names}
    return richest.model_copy(update={**lacking, "score": score})
