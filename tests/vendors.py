"""What each search vendor is asked and how it answers, in the shapes of its documentation; the sentences are ours."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from fathom.tools.base import SearchVendor
from fathom.tools.registry import REGISTRY, named

__all__ = ["CASES", "KEY", "LIMIT", "QUERY", "Case", "Page"]

KEY = "kept-quiet-5f2e91c07ab4"
QUERY = "tides of lakes"
LIMIT = 2
ONE, TWO, THREE = (f"https://lakes.example/{name}" for name in ("one", "two", "three"))
SAID, MORE, OTHER = (
    "Lake Orval rises by nine centimetres & falls again.",
    "Its keepers measured that for eleven years.",
    "Salt lakes rise less than others.",
)
WHOLE = f"# Lake Orval\n\n{SAID}\n\n{MORE}"


@dataclass(frozen=True)
class Page:
    """A page as the vendor's file must give it."""

    url: str
    title: str = ""
    published: str = ""
    score: float = 0.0
    excerpt: str = ""
    whole: str = ""


@dataclass(frozen=True)
class Case:
    """One vendor.

    Attributes:
        name: in settings.
        path: of the request below the vendor's address.
        auth: the header with the key; empty where the key is in the query, as `api_key`.
        asked: what the query or the body must hold, with the limit.
        answer: a body with three results, more than are asked for.
        pages: what becomes of the first two.
        empty: a body without results.
        variables: that configure it; `URL` stands for the address of the test's server.
        post: whether it is asked by POST.
        usd: the price of a search for two pages; None: not known.
        wrong: a body of another shape.
    """

    name: str
    path: str
    auth: dict[str, str]
    asked: Any
    answer: Any
    pages: list[Page]
    empty: Any
    variables: dict[str, str]
    post: bool = True
    usd: float | None = 0.005
    wrong: Any = field(default_factory=lambda: {"results": "none", "organic": {}, "web": 1, "data": "x", "tasks": "x"})

    @property
    def vendor(self) -> type[SearchVendor]:
        """Its class."""
        return named([self.name], REGISTRY.vendors)[0]


def _results(key: str, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**more, key: list(results)}


BEARER = {"Authorization": f"Bearer {KEY}"}
LOGIN = base64.b64encode(f"keeper:{KEY}".encode()).decode()
LIKE_SERPER: list[dict[str, Any]] = [
    {
        "title": "Lake <b>Orval</b>",
        "link": ONE,
        "snippet": SAID.replace("&", "&amp;"),
        "date": "Nov 4, 2025",
        "position": 1,
    },
    {"title": "Salt lakes", "link": TWO, "snippet": OTHER, "position": 2},
    {"title": "Third", "link": THREE, "snippet": "No.", "position": 3},
]
FROM_SERPER = [
    Page(ONE, "Lake Orval", "Nov 4, 2025", excerpt=SAID),
    Page(TWO, "Salt lakes", excerpt=OTHER),
]
PLAIN: list[dict[str, Any]] = [
    {"title": "Lake Orval", "url": ONE, "snippet": SAID, "date": "2025-11-04"},
    {"title": "Salt lakes", "url": TWO, "snippet": OTHER, "date": None},
    {"title": "Third", "url": THREE, "snippet": "No.", "date": None},
]
FROM_PLAIN = [Page(ONE, "Lake Orval", "2025-11-04", excerpt=SAID), Page(TWO, "Salt lakes", excerpt=OTHER)]

CASES = [
    Case(
        name="tavily",
        path="/search",
        auth=BEARER,
        asked={"query": QUERY, "max_results": LIMIT, "include_raw_content": "markdown"},
        answer=_results(
            "results",
            {
                "url": ONE,
                "title": "Lake Orval",
                "content": SAID,
                "score": 0.9,
                "raw_content": WHOLE,
                "published_date": "2025",
            },
            {"url": TWO, "title": "Salt lakes", "content": OTHER, "score": 0.4, "raw_content": None},
            query=QUERY,
        ),
        pages=[Page(ONE, "Lake Orval", "2025", 0.9, SAID, WHOLE), Page(TWO, "Salt lakes", "", 0.4, OTHER)],
        empty={"results": []},
        variables={"TAVILY_API_KEY": KEY, "TAVILY_BASE_URL": "URL"},
        usd=0.008,
    ),
    Case(
        name="searxng",
        path="/search",
        auth={},
        asked={"q": QUERY, "format": "json"},
        answer=_results(
            "results",
            {"url": ONE, "title": "Lake Orval", "content": SAID, "score": 2.0, "publishedDate": "2025-11-04T00:00:00"},
            {"url": TWO, "title": "Salt lakes", "content": OTHER, "score": 1.0, "publishedDate": None},
            {"url": THREE, "title": "Third", "content": "No.", "score": 0.5},
        ),
        pages=[
            Page(ONE, "Lake Orval", "2025-11-04T00:00:00", 2.0, SAID),
            Page(TWO, "Salt lakes", "", 1.0, OTHER),
        ],
        empty={"results": []},
        variables={"SEARXNG_URL": "URL"},
        post=False,
        usd=0.0,
    ),
    Case(
        name="serper",
        path="/search",
        auth={"X-API-KEY": KEY},
        asked={"q": QUERY, "num": LIMIT},
        answer=_results("organic", *LIKE_SERPER, searchParameters={"q": QUERY}, credits=1),
        pages=FROM_SERPER,
        empty={"searchParameters": {"q": QUERY}, "organic": []},
        variables={"SERPER_API_KEY": KEY, "SERPER_BASE_URL": "URL"},
        usd=0.001,
    ),
    Case(
        name="brave",
        path="/res/v1/web/search",
        auth={"X-Subscription-Token": KEY},
        asked={"q": QUERY, "count": str(LIMIT), "extra_snippets": "true"},
        answer={
            "type": "search",
            "query": {"original": QUERY},
            "web": _results(
                "results",
                {
                    "title": "Lake <strong>Orval</strong>",
                    "url": ONE,
                    "description": "Lake <strong>Orval</strong> rises by nine centimetres &amp; falls again.",
                    "page_age": "2025-11-04T10:00:00",
                    "extra_snippets": [MORE],
                },
                {"title": "Salt lakes", "url": TWO, "description": OTHER},
                {"title": "Third", "url": THREE, "description": "No."},
                type="search",
            ),
        },
        pages=[
            Page(ONE, "Lake Orval", "2025-11-04T10:00:00", excerpt=f"{SAID}\n\n{MORE}"),
            Page(TWO, "Salt lakes", excerpt=OTHER),
        ],
        empty={"type": "search", "query": {"original": QUERY}},
        variables={"BRAVE_API_KEY": KEY, "BRAVE_BASE_URL": "URL"},
        post=False,
    ),
    Case(
        name="exa",
        path="/search",
        auth={"x-api-key": KEY},
        asked={"query": QUERY, "numResults": LIMIT, "contents": {"text": True}},
        answer=_results(
            "results",
            {
                "id": ONE,
                "url": ONE,
                "title": "Lake Orval",
                "publishedDate": "2025-11-04T00:00:00.000Z",
                "score": 0.3,
                "text": WHOLE,
            },
            {"id": TWO, "url": TWO, "title": None, "score": None, "text": OTHER},
            requestId="r",
            costDollars={"total": 0.007},
        ),
        pages=[
            Page(ONE, "Lake Orval", "2025-11-04T00:00:00.000Z", 0.3, whole=WHOLE),
            Page(TWO, whole=OTHER),
        ],
        empty={"requestId": "r", "results": []},
        variables={"EXA_API_KEY": KEY, "EXA_BASE_URL": "URL"},
        usd=0.007,
    ),
    Case(
        name="you",
        path="/v1/search",
        auth={"X-API-Key": KEY},
        asked={"query": QUERY, "count": LIMIT},
        answer={
            "results": {
                "web": [
                    {
                        "url": ONE,
                        "title": "Lake Orval",
                        "description": "About it.",
                        "snippets": [SAID, MORE],
                        "page_age": "2025-11-04T00:00:00",
                    },
                    {"url": TWO, "title": "Salt lakes", "description": OTHER, "snippets": []},
                    {"url": THREE, "title": "Third", "description": "No."},
                ],
                "news": [{"url": THREE, "title": "News", "description": "No."}],
            },
            "metadata": {"query": QUERY},
        },
        pages=[
            Page(ONE, "Lake Orval", "2025-11-04T00:00:00", excerpt=f"{SAID}\n\n{MORE}"),
            Page(TWO, "Salt lakes", excerpt=OTHER),
        ],
        empty={"results": {}, "metadata": {"query": QUERY}},
        variables={"YDC_API_KEY": KEY, "YDC_BASE_URL": "URL"},
    ),
    Case(
        name="linkup",
        path="/v1/search",
        auth=BEARER,
        asked={"q": QUERY, "depth": "standard", "outputType": "searchResults", "maxResults": LIMIT},
        answer=_results(
            "results",
            {"type": "image", "name": "A picture", "url": THREE},
            {"type": "text", "name": "Lake Orval", "url": ONE, "content": SAID},
            {"type": "text", "name": "Salt lakes", "url": TWO, "content": OTHER},
        ),
        pages=[Page(ONE, "Lake Orval", excerpt=SAID), Page(TWO, "Salt lakes", excerpt=OTHER)],
        empty={"results": []},
        variables={"LINKUP_API_KEY": KEY, "LINKUP_BASE_URL": "URL"},
        usd=0.00587,
    ),
    Case(
        name="firecrawl",
        path="/v2/search",
        auth=BEARER,
        asked={"query": QUERY, "limit": LIMIT},
        answer={
            "success": True,
            "data": {
                "web": [
                    {
                        "url": ONE,
                        "title": "Lake Orval",
                        "description": SAID,
                        "markdown": WHOLE,
                        "metadata": {"statusCode": 200},
                    },
                    {"url": f"{TWO}.pdf", "title": "Salt lakes", "description": None, "markdown": OTHER},
                    {"url": THREE, "title": "Third", "description": "No."},
                ]
            },
            "creditsUsed": 4,
        },
        pages=[Page(ONE, "Lake Orval", excerpt=SAID, whole=WHOLE), Page(f"{TWO}.pdf", "Salt lakes", excerpt=OTHER)],
        empty={"success": True, "data": {}},
        variables={"FIRECRAWL_API_KEY": KEY, "FIRECRAWL_BASE_URL": "URL"},
        usd=0.00498,
    ),
    Case(
        name="perplexity",
        path="/search",
        auth=BEARER,
        asked={"query": QUERY, "max_results": LIMIT},
        answer=_results("results", *PLAIN, id="r"),
        pages=FROM_PLAIN,
        empty={"id": "r", "results": []},
        variables={"PERPLEXITY_API_KEY": KEY, "PERPLEXITY_BASE_URL": "URL"},
    ),
    Case(
        name="jina",
        path="/",
        auth=BEARER,
        asked={"q": QUERY, "num": str(LIMIT)},
        answer={
            "code": 200,
            "status": 20000,
            "data": [
                {"title": "Lake Orval", "url": ONE, "description": SAID, "content": "", "date": "Nov 4, 2025"},
                {"title": "Salt lakes", "url": TWO, "description": OTHER},
                {"title": "Third", "url": THREE, "description": "No."},
            ],
            "meta": {"usage": {"tokens": 10_000}},
        },
        pages=FROM_SERPER,
        empty={"code": 200, "status": 20000, "data": []},
        variables={"JINA_API_KEY": KEY, "JINA_SEARCH_URL": "URL", "JINA_READER_URL": "URL/reader"},
        post=False,
        usd=0.0005,
    ),
    Case(
        name="litellm:apiserpent",
        path="/api/search/quick",
        auth={"X-API-Key": KEY},
        asked={"q": QUERY},
        answer={"results": {"organic": PLAIN}},
        pages=FROM_PLAIN,
        empty={"results": {"organic": []}},
        variables={"APISERPENT_API_KEY": KEY, "APISERPENT_API_BASE": "URL"},
        post=False,
        usd=0.0006,
    ),
    Case(
        name="litellm:dataforseo",
        path="/",
        auth={"Authorization": f"Basic {LOGIN}"},
        asked=[{"keyword": QUERY, "depth": LIMIT}],
        answer={
            "status_code": 20000,
            "tasks_error": 0,
            "tasks": [
                {
                    "status_code": 20000,
                    "result": [
                        {
                            "items": [
                                {"type": "paid", "title": "Buy a lake", "url": THREE},
                                {"type": "organic", "title": "Lake Orval", "url": ONE, "description": SAID},
                                {"type": "organic", "title": "Salt lakes", "url": TWO, "description": OTHER},
                            ]
                        }
                    ],
                }
            ],
        },
        pages=[Page(ONE, "Lake Orval", excerpt=SAID), Page(TWO, "Salt lakes", excerpt=OTHER)],
        empty={"status_code": 20000, "tasks_error": 0, "tasks": [{"status_code": 20000, "result": [{"items": []}]}]},
        variables={"DATAFORSEO_LOGIN": "keeper", "DATAFORSEO_PASSWORD": KEY, "DATAFORSEO_API_BASE": "URL/"},
        usd=0.003,
        wrong={"status_code": 20000, "tasks_error": 1, "tasks": [{"status_code": 40200, "result": None}]},
    ),
    Case(
        name="litellm:fastcrw",
        path="/search",
        auth=BEARER,
        asked={"query": QUERY, "limit": LIMIT},
        answer={
            "success": True,
            "data": [
                {"url": ONE, "title": "Lake Orval", "description": SAID},
                {"url": TWO, "title": "Salt lakes", "description": OTHER},
            ],
        },
        pages=[Page(ONE, "Lake Orval", excerpt=SAID), Page(TWO, "Salt lakes", excerpt=OTHER)],
        empty={"success": True, "data": []},
        variables={"CRW_API_KEY": KEY, "CRW_API_BASE": "URL"},
        usd=None,
        wrong={"success": False, "error": "the index is closed"},
    ),
    Case(
        name="litellm:nimble",
        path="/search",
        auth=BEARER,
        asked={"query": QUERY, "max_results": LIMIT},
        answer={
            "results": [
                {
                    "title": "Lake Orval",
                    "url": ONE,
                    "description": SAID,
                    "additional_data": {"publish_date": "2025-11-04"},
                },
                {"title": "Salt lakes", "url": TWO, "description": OTHER},
            ]
        },
        pages=FROM_PLAIN,
        empty={"results": []},
        variables={"NIMBLE_API_KEY": KEY, "NIMBLE_API_BASE": "URL"},
    ),
    Case(
        name="litellm:parallel_ai",
        path="/v1/search",
        auth={"x-api-key": KEY},
        asked={"search_queries": [QUERY]},
        answer={
            "search_id": "s",
            "results": [
                {"url": ONE, "title": "Lake Orval", "publish_date": "2025-11-04", "excerpts": [SAID]},
                {"url": TWO, "title": "Salt lakes", "excerpts": [OTHER]},
                {"url": THREE, "title": "Third", "excerpts": ["No."]},
            ],
        },
        pages=FROM_PLAIN,
        empty={"search_id": "s", "results": []},
        variables={"PARALLEL_AI_API_KEY": KEY, "PARALLEL_AI_API_BASE": "URL"},
    ),
    Case(
        name="litellm:searchapi",
        path="/",
        auth={},
        asked={"q": QUERY, "engine": "google", "num": str(LIMIT)},
        answer=_results("organic_results", *LIKE_SERPER),
        pages=FROM_SERPER,
        empty={"organic_results": []},
        variables={"SEARCHAPI_API_KEY": KEY, "SEARCHAPI_API_BASE": "URL/"},
        post=False,
        usd=None,
        wrong={"error": "no credits are left"},
    ),
    Case(
        name="litellm:tinyfish",
        path="/",
        auth={"X-API-Key": KEY},
        asked={"query": QUERY},
        answer=_results("results", *PLAIN, query=QUERY),
        pages=FROM_PLAIN,
        empty={"results": [], "query": QUERY},
        variables={"TINYFISH_API_KEY": KEY, "TINYFISH_API_BASE": "URL/"},
        post=False,
        usd=0.0,
    ),
]
