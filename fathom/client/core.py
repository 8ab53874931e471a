"""Code that the blocking and the asynchronous client share:

requests, answers, failures, and two ways to run programs. An operation is a generator, a `Program`. It yields what is
to be done, such as a request, receives the result, and finally returns its value. `Blocking` and `Awaiting` are the two
ways to run one, so no operation is written twice.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypedDict, TypeVar, Unpack
from urllib.parse import quote

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from fathom.client.shapes import Problem, RunEvent
from fathom.errors import FathomError, InvalidInput, ServerFailed

API = "/api/v1"
LONGEST_WAIT = 60.0
"""The longest Retry-After, in seconds, that the client waits for by itself."""
_HEADERS = {"User-Agent": "fathom-client", "Accept": "application/json"}
_IDEMPOTENT = ("GET", "PUT", "PATCH", "DELETE")
_AGAIN = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
# The request did not arrive, so it can be sent again whatever it asks for.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True)
class Pause:
    """Wait for some seconds."""

    seconds: float


@dataclass(frozen=True)
class Open:
    """Send a request and give back the answer before its body is read, unless it is an error."""

    request: httpx.Request


class More:
    """Give back the next bytes of the answer that is open; none at its end."""


@dataclass(frozen=True)
class Tell:
    """Call a function of the user with an event."""

    handler: Callable[[RunEvent], object]
    event: RunEvent


Step = httpx.Request | Pause | Open | More | Tell | RunEvent
"""What a program asks for. A request is answered with a response, an event is passed on to the user."""
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
Program = Generator[Step, Any, T]


class RequestParts(TypedDict, total=False):
    """What a request has besides its method and its path.

    Attributes:
        json: its body.
        params: of its address; those that are None are left out.
        headers: beside those of every request.
        parts: a form's fields, by name, and its files, each with its own name.
        silence: how long the answer may send nothing, in seconds, where that is longer than the client's time-out.
    """

    json: BaseModel | Mapping[str, Any]
    params: Mapping[str, Any]
    headers: Mapping[str, str]
    parts: Sequence[tuple[str, tuple[str | None, bytes]]]
    silence: float


class Core:
    """Where the server is, and how it is asked."""

    def __init__(self, url: str, token: str | None, timeout: float, retries: int) -> None:
        self.url = _checked(url)
        self._retries = retries
        self._timeout = httpx.Timeout(timeout, connect=min(timeout, 10.0)).as_dict()
        if token is not None and not (token.isascii() and token.isprintable() and token):
            raise InvalidInput("The token contains characters that no token can contain.", next_step="copy it again")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def request(self, method: str, path: str, **given: Unpack[RequestParts]) -> httpx.Request:
        """Return a request; `path` counts from `/api/v1`."""
        json, silence = given.get("json"), given.get("silence", 0.0)
        body = json.model_dump(mode="json", exclude_unset=True) if isinstance(json, BaseModel) else json
        return httpx.Request(
            method,
            f"{self.url}{API}{path}",
            params={name: value for name, value in given.get("params", {}).items() if value is not None} or None,
            headers={**_HEADERS, **self._headers, **given.get("headers", {})},
            json=body,
            files=given.get("parts"),
            extensions={"timeout": {**self._timeout, "read": max(self._timeout["read"] or 0, silence)}},
        )

    def send(self, method: str, path: str, **given: Unpack[RequestParts]) -> Program[httpx.Response]:
        """Send a request, and repeat it if the failure may be temporary and a second arrival does no harm.

        Raises:
            FathomError: the server refuses the request, or its answer is not Fathom's.
        """
        request = self.request(method, path, **given)
        harmless = method in _IDEMPOTENT or "Idempotency-Key" in request.headers
        failures = 0
        while True:
            try:
                response: httpx.Response = yield request
                if not (failure := failure_in(response)):
                    return response
                again = response.status_code == HTTPStatus.TOO_MANY_REQUESTS or (
                    harmless and response.status_code in _AGAIN
                )
            except httpx.TransportError as error:
                failure = unreachable(self.url, error)
                again = harmless or isinstance(error, _NOT_SENT)
            failures += 1
            yield self.pause_after(failure, failures, again=again)

    def pause_after(self, failure: FathomError, attempts: int, *, again: bool) -> Pause:
        """Return how long to wait before another attempt: what the server asks for, else 0.5, 1, 2 ... 15 s, varied.

        Raises:
            FathomError: the failure itself, unless `again`, or after enough attempts, or if the wait is too long.
        """
        wanted = failure.retry_after
        if not again or attempts > self._retries or (wanted or 0) > LONGEST_WAIT:
            raise failure
        if wanted is not None:
            return Pause(wanted)
        return Pause(min(2.0 ** (attempts - 2), 15.0) * random.uniform(0.75, 1.25))  # noqa: S311 - no secret

    def ask(self, shape: type[T], method: str, path: str, **given: Unpack[RequestParts]) -> Program[T]:
        """Send a request, as `send` does, and return the answer in a shape."""
        response = yield from self.send(method, path, **given)
        return read(shape, response)


def path(*parts: str) -> str:
    """Return a path made of parts. Ids and names come from anywhere, and must not become another path.

    Raises:
        InvalidInput: a part cannot be a name.
    """
    for part in parts:
        if part in ("", ".", "..") or "/" in part:
            raise InvalidInput(f"{part!r} is not a name.")
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def made(shape: type[M], **given: object) -> M:
    """Return a request in its shape.

    Raises:
        InvalidInput: the request does not have this shape.
    """
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise InvalidInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def read(shape: type[T], response: httpx.Response) -> T:
    """Return the body of an answer in a shape.

    Raises:
        ServerFailed: the body has another shape, so the answer came from no Fathom server, or from one of another
            version.
    """
    return parsed(shape, response.content, str(response.request.url.copy_with(query=None)))


def parsed(shape: type[T], text: bytes, place: str) -> T:
    """Return JSON in a shape. Fields that a later version has added are left out.

    Raises:
        ServerFailed: it has another shape.
    """
    try:
        return TypeAdapter(shape).validate_json(text, extra="ignore")
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the answer"
        raise ServerFailed(
            f"{place} is not what Fathom sends: {field}: {first['msg']}",
            next_step="check the address; client and server should be of the same version",
        ) from None


def failure_in(response: httpx.Response) -> FathomError | None:
    """Return the failure that an answer reports; None if it reports none. Its body must have been read."""
    if response.is_success:
        return None
    problem = None
    if response.headers.get("Content-Type", "").startswith("application/problem+json"):
        try:
            problem = Problem.model_validate_json(response.content, extra="ignore")
        except ValidationError:
            problem = None  # reported below as an answer that is not Fathom's
    failure: FathomError
    if problem:
        kind = _kinds().get(problem.code or "", ServerFailed)
        failure = kind(problem.detail or problem.title, next_step=problem.next_step)
        if isinstance(failure, InvalidInput):
            failure.wrong = tuple(problem.errors)
    else:
        where = response.request.url.copy_with(query=None)
        told = f"{response.status_code} {response.reason_phrase}".strip()
        to = f" to {response.headers['Location']}" if response.is_redirect else ""
        failure = ServerFailed(f"{where} answers {told}{to}.", next_step="check the address of the server")
    failure.status = response.status_code
    seconds = response.headers.get("Retry-After", "")
    failure.retry_after = float(seconds) if seconds.isascii() and seconds.isdigit() else None
    return failure


def unreachable(url: str, error: httpx.TransportError) -> ServerFailed:
    """Return the failure of a request that had no answer."""
    return ServerFailed(
        f"{url} does not answer: {str(error) or type(error).__name__}.",
        next_step="start it with `fathom serve`, or set FATHOM_URL",
    )


def _kinds() -> dict[str, type[FathomError]]:
    found: dict[str, type[FathomError]] = {}
    left = [FathomError]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        if "code" in vars(kind):
            found[kind.code] = kind
    return found


def _checked(url: str) -> str:
    try:
        given = httpx.URL(url)
    except httpx.InvalidURL:
        given = httpx.URL("")
    if given.scheme not in ("http", "https") or not given.host or given.query or given.fragment or given.userinfo:
        raise InvalidInput("The address of the server cannot be used.", next_step="for example http://127.0.0.1:8700")
    return str(given).rstrip("/").removesuffix(API)


class Blocking:
    """Runs programs while the caller waits."""

    def __init__(self) -> None:
        self.http = httpx.Client()

    def run(self, program: Program[T]) -> T:
        """Run a program and return its value."""
        kept: list[T] = []
        for _ in self.events(_keeping(program, kept)):
            pass
        return kept[0]

    def events(self, program: Program[Any]) -> Generator[RunEvent, None, None]:
        """Run a program and yield the events that it passes on."""
        answer: Any = None
        chunks: Iterator[bytes] = iter(())
        with ExitStack() as opened:
            while True:
                try:
                    step = program.throw(answer) if isinstance(answer, httpx.TransportError) else program.send(answer)
                except StopIteration:
                    return
                answer = None
                if isinstance(step, RunEvent):
                    yield step
                elif isinstance(step, Tell):
                    step.handler(step.event)
                elif isinstance(step, Pause):
                    time.sleep(step.seconds)
                else:
                    try:
                        if isinstance(step, httpx.Request):
                            answer = self.http.send(step)
                        elif isinstance(step, Open):
                            opened.close()
                            answer = self.http.send(step.request, stream=True)
                            opened.callback(answer.close)
                            if not answer.is_success:
                                answer.read()
                            chunks = answer.iter_bytes()
                        else:
                            answer = next(chunks, b"")
                    except httpx.TransportError as error:
                        answer = error


class Awaiting:
    """Runs programs on the caller's event loop."""

    def __init__(self) -> None:
        self.http = httpx.AsyncClient()

    async def run(self, program: Program[T]) -> T:
        """Run a program and return its value."""
        kept: list[T] = []
        async for _ in self.events(_keeping(program, kept)):
            pass
        return kept[0]

    async def events(self, program: Program[Any]) -> AsyncGenerator[RunEvent, None]:
        """Run a program and yield the events that it passes on; functions of the user may be coroutine functions."""
        answer: Any = None
        chunks: AsyncIterator[bytes] | None = None
        async with AsyncExitStack() as opened:
            while True:
                try:
                    step = program.throw(answer) if isinstance(answer, httpx.TransportError) else program.send(answer)
                except StopIteration:
                    return
                answer = None
                if isinstance(step, RunEvent):
                    yield step
                elif isinstance(step, Tell):
                    told = step.handler(step.event)
                    if inspect.isawaitable(told):
                        await told
                elif isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                else:
                    try:
                        if isinstance(step, httpx.Request):
                            answer = await self.http.send(step)
                        elif isinstance(step, Open):
                            await opened.aclose()
                            answer = await self.http.send(step.request, stream=True)
                            opened.push_async_callback(answer.aclose)
                            if not answer.is_success:
                                await answer.aread()
                            chunks = answer.aiter_bytes()
                        elif chunks is not None:
                            answer = await anext(chunks, b"")
                    except httpx.TransportError as error:
                        answer = error


def _keeping(program: Program[T], kept: list[T]) -> Program[None]:
    kept.append((yield from program))
