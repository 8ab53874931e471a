"""Looking something up in a public service: the shared part of all such tools, so that each file has only its own.

A source is one file with one subclass of `LookupTool`. It declares, beside what every tool declares:

- `service`: its name as messages say it; `address`: of its interface, without a slash at the end.
- `domains`: the fields it knows, such as ("science", "medicine"), of `fathom/tools/domains.toml` or words of its own;
  only runs that name it or its `group` use it, for steps that are about one of them.
- `seconds_between` and `at_once`: what its rules of use allow, and with a key `keyed_seconds_between`.
- `optional`: `{NAME}_BASE_URL` for another address, FATHOM_CONTACT, and a `..._KEY` or `..._TOKEN` if it takes one;
  then `setup` says what the key is good for: who is asked for fewer requests is told so.
- `joins`: how its syntax joins words. " " alone means all of them; the second, usually " OR ", is tried if the first
  found nothing. Then `find` gets the words of the query without any syntax of its own. Empty: the service takes plain
  language, and `find` gets the query as it is.

It implements `find(query, limit)`, which returns `WebPage`s, the best first. It asks by `self.ask_json(model, path,
**parameters)`, which validates the answer by a pydantic model after dropping its nulls (a list of `Records[Model]` does
without those that are malformed), or by `self.ask(path, read,
**parameters)`, where a ValueError in `read` means that the answer is unreadable (`parse_xml` in `fathom/tools/http.py`
reads XML safely). `self.key` and `self.contact` may be empty, and an empty parameter is not sent; `headers()` adds
headers. `self.rest(seconds)` keeps a pause that the body of an answer asks for. `place(path)` says which of
several servers has a path.

What it need not do: clean the query, wait for its turn, try again, obey Retry-After, name who asks, keep answers for a
while, apply the user's rules for sources, score, clean what is returned, and say what failed.

A page's `reference` has authors, DOI, venue, licence and the address of an open full text, as far as they are known;
its date is `published`. The URL of a page is the one that a reader should get: of a work with a DOI `doi_address(doi)`,
so that a work found by several services is one source. `fetch` reads `reference.full_text` in its place.
"""

from __future__ import annotations

import re
import textwrap
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from fathom.config.groups import AccessScope
from fathom.errors import ToolError, ToolRateLimited, ToolRejected
from fathom.models import Bibliographic, Holdings, SourceText, ToolOutput
from fathom.network import pace_of, user_agent
from fathom.sources.domains import admitted
from fathom.text.plain import clean_line
from fathom.text.terms import ENGLISH
from fathom.tools.base import RunContext, Tool
from fathom.tools.http import request, retrying, service_errors
from fathom.tools.pages import WebPage, output, remembered

if TYPE_CHECKING:
    import httpx

LONGEST_QUERY = 300  # characters
MOST_WORDS = 20
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_IN_PATHS = "/:;()!*'$&+,=@~"
_OPERATORS = frozenset({"AND", "OR", "NOT", "ANDNOT", "NEAR", "TO"})

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=BaseModel)


def _readable(record: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(record)
    except ValidationError:
        return None


def _those_readable(records: list[Any]) -> list[Any]:
    readable = [record for record in records if record is not None]
    if records and not readable:
        raise ValueError("no record of the documented shape")
    return readable


Records = Annotated[list[Annotated[T, WrapValidator(_readable)]], AfterValidator(_those_readable)]
"""The records of an answer; records of another shape are left out, unless all have one."""


class LookupTool(Tool):
    """Looks a query up in one public service."""

    service: str
    address: str
    seconds_between: float = 1.0
    keyed_seconds_between: float | None = None  # with a key, if that allows more
    at_once: int = 4
    joins: tuple[str, ...] = ()
    searches = network = fetchable = True
    scope = AccessScope.public_sources

    def __init__(self, run: RunContext) -> None:
        settings, own = run.settings, {name: run.variable(name) for name in (*self.variables, *self.optional)}
        self.key = next((own[name] for name in own if name.endswith(("_KEY", "_TOKEN"))), "")
        self.contact = run.environment.contact
        address = next((own[name] for name in own if name.endswith("_BASE_URL") and own[name]), self.address)
        self._address = address.rstrip("/")
        self._pace = pace_of(self.service, self._address, self.at_once)
        self._kept = run.searches
        self._rules = settings.sources
        self._most = settings.max_results
        self._wanted = settings.max_results * (2 if self._rules.allow or self._rules.block else 1)

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Ask the public service, unless the environment names another address."""
        return cls(run)

    @abstractmethod
    async def find(self, query: str, limit: int) -> list[WebPage]:
        """Return at most `limit` pages, the best first.

        Raises:
            ToolError: a request failed.
        """

    async def run(self, tool_input: str) -> ToolOutput:
        """Look up the input.

        Raises:
            ToolError: it is empty, or a request failed.
        """
        line = clean_line(tool_input)
        query = textwrap.shorten(line, LONGEST_QUERY, placeholder="") or line[:LONGEST_QUERY]
        if not query:
            raise ToolRejected("The search query is empty.")
        key = f"lookup {self.name} {self._address} {self._wanted} {query}"
        pages = await remembered(self._kept, key, lambda: self._find(query))
        found = output(pages)
        kept = [self._permitted(text) for text in found.results if admitted(text, self._rules)][: self._most]
        return found.model_copy(update={"results": kept})

    async def holdings(self, words: Sequence[str]) -> Holdings:
        """Return the place of its search; the holdings are unknown."""
        return Holdings(tool=self.name, where=[self.service])

    async def ask(self, path: str, read: Callable[[httpx.Response], T], **parameters: str | int) -> T:
        """Make one request when it is its turn, with retries, and read its answer.

        Raises:
            ToolError: the request failed; the class says how.
        """
        headers = {"User-Agent": self.name_given, **self.headers()}
        sent = {name: value for name, value in parameters.items() if value != ""}
        return await retrying(
            lambda: request(
                self.service, self.place(path), read, params=sent, headers=headers, remedies=self._remedies()
            ),
            self.name,
            self._turn,
        )

    def place(self, path: str) -> str:
        """Return the address of a path; a service of several servers chooses one of them."""
        return self._address + path

    async def ask_json(self, model: type[ModelT], path: str, **parameters: str | int) -> ModelT:
        """Make one request as `ask` does, and validate its answer; a field that is null counts as left out."""
        return await self.ask(path, lambda answer: model.model_validate(_without_nulls(answer.json())), **parameters)

    @property
    def name_given(self) -> str:
        """The user agent for the service, with the contact address if that is set."""
        return user_agent(self.contact)

    def headers(self) -> Mapping[str, str]:
        """Return headers that the service requires, such as a key."""
        return {}

    def rest(self, seconds: float) -> None:
        """Make all runs pause requests to the service for some seconds, as its answer asked."""
        self._pace.rest(seconds)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        keyed = self.keyed_seconds_between if self.key else None
        try:
            async with self._pace.turn(self.seconds_between if keyed is None else keyed):
                yield
        except ToolError as error:
            self.rest(error.retry_after or 0.0)
            if self.key or not isinstance(error, ToolRateLimited):
                raise
            raise ToolRateLimited(error.message, next_step=self.setup, retry_after=error.retry_after) from error

    def _permitted(self, text: SourceText) -> SourceText:
        """Return a text without the address of its full text if the user's rules forbid reading it."""
        known = text.reference
        if not known or admitted(text.model_copy(update={"url": known.full_text or text.url}), self._rules):
            return text
        return text.model_copy(update={"reference": known.model_copy(update={"full_text": ""})})

    async def _find(self, query: str) -> list[WebPage]:
        words = words_of(query)
        pages: list[WebPage] = []
        for given in dict.fromkeys(join.join(words) for join in self.joins) or [query]:
            with service_errors(self.service):  # also for errors of `find` while reading answers
                pages = await self.find(given, self._wanted)
            if pages:
                break
        return [_described(page, 1 - rank / len(pages)) for rank, page in enumerate(pages)]

    def _remedies(self) -> dict[int, str]:
        keys = [name for name in (*self.variables, *self.optional) if name.endswith(("_KEY", "_TOKEN"))]
        return dict.fromkeys((401, 403), f"check {keys[0]}") if keys and self.key else {}


def words_of(query: str) -> list[str]:
    """Return the search words of a query, without any service's syntax and without function words."""
    words = [word for word in _WORD.findall(query) if word not in _OPERATORS]
    telling = [word for word in words if word.lower() not in ENGLISH or (word.isupper() and len(word) > 1)]
    return (telling or words or [query])[:MOST_WORDS]


def doi_address(doi: str) -> str:
    """Return the address of a work by its DOI, as `clean_doi` returns it; for a preprint on arXiv its page there."""
    preprint = doi.removeprefix("10.48550/arxiv.")
    return f"https://doi.org/{quote(doi, safe=_IN_PATHS)}" if preprint == doi else f"https://arxiv.org/abs/{preprint}"


def _without_nulls(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _without_nulls(value) for name, value in data.items() if value is not None}
    return [_without_nulls(value) for value in data if value is not None] if isinstance(data, list) else data


def _described(page: WebPage, score: float) -> WebPage:
    """Return a page with its score; without a text, it gets at least the service's description."""
    if page.excerpt or page.whole:
        return page.model_copy(update={"score": score})
    known = page.reference or Bibliographic()
    parts = [page.title, ", ".join(known.authors), known.venue, page.published]
    return page.model_copy(update={"score": score, "excerpt": ". ".join(part for part in parts if part)})
