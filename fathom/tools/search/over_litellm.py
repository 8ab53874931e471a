"""Further vendors, named `litellm:<provider>`, over litellm's transformations of searches.

litellm turns a query into a request and an answer into results; the request itself is made here, because litellm's own
forgets timeouts and scores and hides failures. The transformations are not a public interface: a test of each provider
checks the parts that are used here.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fathom.budget.prices import model_entry
from fathom.config.environment import Environment
from fathom.errors import ToolRejected
from fathom.llm.over_litellm import load_litellm
from fathom.tools.base import ANYWHERE, RunContext, SearchLimits, SearchVendor
from fathom.tools.http import request
from fathom.tools.pages import WebPage
from fathom.tools.search.keyed import plain

if TYPE_CHECKING:
    import httpx

PREFIX = "litellm:"
PROVIDERS: dict[str, tuple[str, ...]] = {
    "apiserpent": ("APISERPENT_API_KEY",),
    "dataforseo": ("DATAFORSEO_LOGIN", "DATAFORSEO_PASSWORD"),
    "fastcrw": ("CRW_API_KEY",),
    "nimble": ("NIMBLE_API_KEY",),
    "parallel_ai": ("PARALLEL_AI_API_KEY",),
    "searchapi": ("SEARCHAPI_API_KEY",),
    "tinyfish": ("TINYFISH_API_KEY",),
}
"""The variables of each provider. Not here: those with a file of their own; Google PSE and Bing, which are closed;
AgentCore, which takes AWS credentials; DuckDuckGo, whose interface answers from encyclopedias and does not search."""


class LiteLLMVendor(SearchVendor):
    """Searches through one provider; `vendor_of` makes the class of each."""

    provider: ClassVar[str]
    only_named = True

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._key = ":".join(environment.variables.get(name, "").strip() for name in self.variables)
        self.address = environment.variables.get(self.optional[0], "")

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Use the user's key."""
        return cls(run.environment)

    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        """Return the pages it finds; litellm keeps dates and excerpts, no scores and no whole texts."""
        await asyncio.to_thread(load_litellm, self._environment)  # the other vendors need not wait for it
        from litellm.llms.base_llm.chat.transformation import BaseLLMException
        from litellm.types.utils import SearchProviders
        from litellm.utils import ProviderConfigManager

        config: Any = ProviderConfigManager.get_provider_search_config(SearchProviders(self.provider))
        options, asked = {"max_results": limit}, {"api_key": self._key, "api_base": self.address or None}
        try:
            headers = config.validate_environment(headers={}, **asked)
            body = config.transform_search_request(query=query, optional_params=options, **asked)
            url = config.get_complete_url(optional_params=options, data=body, **asked)
        except ValueError as error:
            raise ToolRejected(f"litellm makes no search of {self.provider}: {error}") from None

        def read(response: httpx.Response) -> list[WebPage]:
            unused = SimpleNamespace(optional_params={})  # where one provider notes its price
            try:
                found = config.transform_search_response(
                    raw_response=response, logging_obj=unused, optional_params=options
                )
            except (BaseLLMException, TypeError, LookupError):
                raise ValueError("an answer of another shape") from None  # its message may contain the key
            if not found.results and _says_error(response.json()):
                raise ValueError("an error where results should be")
            return [
                WebPage(url=page.url, title=plain(page.title), published=page.date or "", excerpt=plain(page.snippet))
                for page in found.results[:limit]
            ]

        remedies = dict.fromkeys((401, 402, 403), f"check {' and '.join(self.variables)} and the limits of its plan")
        sent = None if config.get_http_method() == "GET" else body
        return await request(self.name, url, read, body=sent, headers=headers, remedies=remedies)


def _says_error(answer: Any) -> bool:
    """Whether a successful answer reports a failure, which litellm takes for no results."""
    return isinstance(answer, dict) and bool(
        answer.get("error") or answer.get("tasks_error") or answer.get("success") is False
    )


@cache
def vendor_of(provider: str) -> type[LiteLLMVendor]:
    """Return the class of a provider's vendor."""
    variables = PROVIDERS[provider]
    stem = variables[0].removesuffix("_API_KEY").removesuffix("_LOGIN")
    price = model_entry(f"{provider}/search").get("input_cost_per_query")
    facts = {
        "provider": provider,
        "name": f"{PREFIX}{provider}",
        "variables": variables,
        "optional": (f"{stem}_API_BASE",),
        "setup": f"{' and '.join(variables)} for {PREFIX}{provider}",
        "usd": Decimal(str(price)) if isinstance(price, int | float) else None,
    }
    return type("LiteLLMVendor", (LiteLLMVendor,), facts)
