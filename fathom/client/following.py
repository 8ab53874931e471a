"""The events of a run, each once, until it has ended; and methods that are written once for both clients.

Such a method is written as a program; it blocks in one client and is awaited in the other. Its type follows from the
client that it is called on: `client.runs.get(id)` is a `Run` with `Fathom`, and a coroutine that returns one with
`AsyncFathom`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from types import MethodType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Self, TypeVar, overload

import httpx

from fathom.client.core import (
    Awaiting,
    Blocking,
    Core,
    More,
    Open,
    Pause,
    Program,
    Tell,
    failure_in,
    parsed,
    path,
    read,
    unreachable,
)
from fathom.client.shapes import MEDIA_TYPES, EventType, Run, RunEvent
from fathom.models import Claim, Report, Source

Handler = Callable[[RunEvent], object]
SILENCE = 60.0
"""Seconds without a byte after which a connection is given up: the server sends one at least every 15 s."""
LIVES = 10.0
"""Seconds after which a connection counts as working, although nothing happened in the run."""
_TYPES = frozenset(EventType)


class Following:
    """The state of following one run."""

    def __init__(self, core: Core, begin: Program[Run], after: int = 0) -> None:
        self.last = after
        self.run: Run | None = None
        self.finished: FinishedRun | None = None
        self.handlers: list[tuple[str, Handler]] = []
        self._core = core
        self._begin = begin

    def events(self) -> Program[FinishedRun]:
        """Pass on the events until the run has ended, and return it.

        Raises:
            FathomError: the server refuses the request, or all of the client's attempts to reach it failed.
        """
        self.run = run = yield from self._begin
        while True:
            last, ended = self.last, run.state.ended
            yield from self._connected(run)
            run = self.run = yield from self._core.ask(Run, "GET", path("runs", run.id))
            # A proxy may end an answer early and in good order. It was complete if it was begun when nothing more
            # happened, and brought nothing new.
            if ended and run.state.ended and self.last == last:
                self.finished = yield from finished(self._core, run)
                return self.finished
            if not run.state.ended:
                yield Pause(1.0)

    def _connected(self, run: Run) -> Program[None]:
        """Pass on events until the server ends its answer; connect again when the connection breaks."""
        failures = 0
        while True:
            try:
                response: httpx.Response = yield Open(self._request(run))
                failure, again = failure_in(response), response.status_code in (429, 502, 503, 504)
                if failure is None:
                    lines = Lines()
                    opened = time.monotonic()
                    while chunk := (yield More()):
                        if time.monotonic() - opened > LIVES:
                            failures = 0
                        for event in lines.feed(chunk):
                            failures = 0
                            yield from self._pass_on(event)
                    return
            except httpx.TransportError as error:
                failure, again = unreachable(self._core.url, error), True
            failures += 1
            yield self._core.pause_after(failure, failures, again=again)

    def _request(self, run: Run) -> httpx.Request:
        wanted = {"Accept": "text/event-stream", "Last-Event-ID": str(self.last)}
        return self._core.request("GET", path("runs", run.id, "events"), headers=wanted, silence=SILENCE)

    def _pass_on(self, event: RunEvent) -> Program[None]:
        if event.id and event.id <= self.last:
            return
        self.last = max(self.last, event.id)
        for kind, handler in self.handlers:
            if kind in ("progress", event.type):
                yield Tell(handler, event)
        yield event


class Lines:
    """Server-sent events, read as their bytes come. Events of a kind that this version does not know are left out."""

    def __init__(self) -> None:
        self._left = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[RunEvent]:
        """Yield the events that these bytes complete."""
        # Lines end where HTTP says so; a title may hold what Python takes for the end of a line.
        *lines, self._left = (self._left + chunk).split(b"\n")
        for line in (line.removesuffix(b"\r") for line in lines):
            if line.startswith(b"data:"):
                self._data.append(line.removeprefix(b"data:").removeprefix(b" "))
            elif not line and self._data:
                text, self._data = b"\n".join(self._data), []
                told = parsed(dict[str, object], text, "an event")
                if told.get("type") in _TYPES:
                    yield parsed(RunEvent, text, "an event")


class _Shown:
    """The attributes that both kinds of iterators have."""

    def __init__(self, following: Following) -> None:
        self._following = following

    @property
    def run(self) -> FinishedRun:
        """The run, once its last event was delivered.

        Raises:
            RuntimeError: the run has not ended yet.
        """
        if self._following.finished is None:
            raise RuntimeError("The run has not ended: iterate to the end first, or call finish().")
        return self._following.finished

    @property
    def run_id(self) -> str:
        """The id of the run.

        Raises:
            RuntimeError: the run has not started; the first step of the iteration starts it.
        """
        if self._following.run is None:
            raise RuntimeError("The run has not started: iterate first.")
        return self._following.run.id

    @property
    def last_event_id(self) -> int:
        """The id of the last event that was delivered; `client.runs.events` can continue after it."""
        return self._following.last

    def on(self, kind: Literal["progress"] | EventType | str, handler: Handler) -> Self:
        """Have a function called with each event of a kind, or of every kind with `progress`.

        With `AsyncFathom` it may be a coroutine function.

        Raises:
            ValueError: there is no such kind.
        """
        if kind != "progress":
            kind = EventType(kind)
        self._following.handlers.append((kind, handler))
        return self


class Events(_Shown, Iterator[RunEvent]):
    """The events of a run, as they come."""

    def __init__(self, following: Following, driver: Blocking) -> None:
        super().__init__(following)
        self._events = driver.events(following.events())

    def __next__(self) -> RunEvent:
        """Wait for the next event."""
        return next(self._events)

    def finish(self) -> FinishedRun:
        """Wait for the end, calling the functions that `on` was given, and return the run."""
        for _ in self:
            pass
        return self.run

    def close(self) -> None:
        """Stop listening. The run goes on."""
        self._events.close()


class AsyncEvents(_Shown, AsyncIterator[RunEvent]):
    """The events of a run, as they come."""

    def __init__(self, following: Following, driver: Awaiting) -> None:
        super().__init__(following)
        self._events = driver.events(following.events())

    async def __anext__(self) -> RunEvent:
        """Wait for the next event."""
        return await anext(self._events)

    async def finish(self) -> FinishedRun:
        """Wait for the end, calling the functions that `on` was given, and return the run."""
        async for _ in self:
            pass
        return self.run

    async def close(self) -> None:
        """Stop listening. The run goes on."""
        await self._events.aclose()


class FinishedRun(Run):
    """A run that has ended, perhaps failed or cancelled: `state` says how, and `reason` why."""

    report: str  # in Markdown; empty if there is none
    report_data: Report | None  # the report as data

    @property
    def answer(self) -> str:
        """The answer in short, which cites sources by id; empty without a report."""
        if self.result and self.result.answer:
            return self.result.answer
        return self.report_data.sections[0].markdown if self.report_data and self.report_data.sections else ""

    @property
    def sources(self) -> list[Source]:
        """The sources that were found."""
        return self.result.sources if self.result else []

    @property
    def claims(self) -> list[Claim]:
        """The sentences of the report, each with the quotes that support it."""
        return self.report_data.claims if self.report_data else []

    @property
    def cost(self) -> float | None:
        """What the run cost in US dollars; None if a price is not known."""
        return self.cost_usd

    @property
    def reason(self) -> str:
        """Why the run is not complete; empty if it is complete, or if the reason is unknown."""
        return self.result.reason if self.result else ""


def finished(core: Core, run: Run) -> Program[FinishedRun]:
    """Return a run that has ended, with its report."""
    report, data = "", None
    if run.links.report:
        place = path("runs", run.id, "report")
        report = (yield from core.send("GET", place, headers={"Accept": MEDIA_TYPES["md"]})).text
        answer = yield from core.send("GET", place, headers={"Accept": MEDIA_TYPES["json"]})
        data = read(Report, answer)
    return FinishedRun.model_construct(**dict(run), report=report, report_data=data)


D = TypeVar("D", bound=Blocking | Awaiting)
P = ParamSpec("P")
T = TypeVar("T")


class Resource(Generic[D]):
    """A part of the API."""

    def __init__(self, core: Core, driver: D) -> None:
        self._core = core
        self._driver = driver


@dataclass(frozen=True)
class Pages(Generic[T]):
    """A list that comes in pages: `page` requests the page of a cursor, and returns its items and the next cursor."""

    page: Callable[[str | None], Program[tuple[Sequence[T], str | None]]]


class _Method(Generic[P, T]):
    def __init__(self, method: Callable[Concatenate[Any, P], T]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def _bound(self, resource: Resource[Any] | None, run: Callable[[Any, T], Any]) -> Any:
        """Return the method of a client, which runs what it makes."""
        if resource is None:  # on the class, as documentation is read
            return self._method
        driver, made = resource._driver, MethodType(self._method, resource)
        return update_wrapper(lambda *given, **named: run(driver, made(*given, **named)), made)


class endpoint(_Method[P, Program[T]]):
    """A method that returns the value of its program."""

    @overload
    def __get__(self, resource: Resource[Blocking], owner: object = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Awaiting], owner: object = None) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: object = None) -> Any:
        """Return the method of a client."""
        return self._bound(resource, lambda driver, program: driver.run(program))


class listing(_Method[P, Pages[T]]):
    """A method that returns an iterator over pages; each page is fetched when it is reached."""

    @overload
    def __get__(self, resource: Resource[Blocking], owner: object = None) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, resource: Resource[Awaiting], owner: object = None) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: object = None) -> Any:
        """Return the method of a client."""
        return self._bound(resource, lambda driver, pages: _LISTED[type(driver)](driver, pages))


class following(_Method[P, Following]):
    """A method that returns an iterator over the events of a run."""

    @overload
    def __get__(self, resource: Resource[Blocking], owner: object = None) -> Callable[P, Events]: ...
    @overload
    def __get__(self, resource: Resource[Awaiting], owner: object = None) -> Callable[P, AsyncEvents]: ...
    def __get__(self, resource: Resource[Any] | None, owner: object = None) -> Any:
        """Return the method of a client."""
        return self._bound(resource, lambda driver, followed: _FOLLOWED[type(driver)](followed, driver))


def _listed(driver: Blocking, pages: Pages[T]) -> Iterator[T]:
    items, cursor = driver.run(pages.page(None))
    yield from items
    while cursor:
        items, cursor = driver.run(pages.page(cursor))
        yield from items


async def _listed_async(driver: Awaiting, pages: Pages[T]) -> AsyncIterator[T]:
    items, cursor = await driver.run(pages.page(None))
    while True:
        for item in items:
            yield item
        if not cursor:
            return
        items, cursor = await driver.run(pages.page(cursor))


_LISTED: dict[type, Callable[..., Any]] = {Blocking: _listed, Awaiting: _listed_async}
_FOLLOWED: dict[type, Callable[..., Any]] = {Blocking: Events, Awaiting: AsyncEvents}
