"""Methods that are written once, as programs, and are blocking in one client and awaited in the other.

The type of a method follows from the client that it is called on: `client.runs.get(id)` is a `Run` with `Fathom`, and
a coroutine of one with `AsyncFathom`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from fathom.client.core import Core, Program
from fathom.client.drivers import Awaiting, Blocking
from fathom.client.following import AsyncEvents, Events, Following

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
    """A list that comes in pages: `page` asks for the one of a cursor, and returns its items and the next cursor."""

    page: Callable[[str | None], Program[tuple[Sequence[T], str | None]]]


class endpoint(Generic[P, T]):
    """A method that returns what its program does."""

    def __init__(self, method: Callable[Concatenate[Any, P], Program[T]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, resource: Resource[Blocking], owner: object = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Awaiting], owner: object = None) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: object = None) -> Any:
        """Return the method of a client."""
        return _bound(resource, self._method, lambda driver, program: driver.run(program))


class listing(Generic[P, T]):
    """A method that returns an iterator over pages, each of which is fetched when it is reached."""

    def __init__(self, method: Callable[Concatenate[Any, P], Pages[T]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, resource: Resource[Blocking], owner: object = None) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, resource: Resource[Awaiting], owner: object = None) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: object = None) -> Any:
        """Return the method of a client."""
        return _bound(resource, self._method, lambda driver, pages: _LISTED[type(driver)](driver, pages))


class following(Generic[P]):
    """A method that returns an iterator over the events of a run."""

    def __init__(self, method: Callable[Concatenate[Any, P], Following]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, resource: Resource[Blocking], owner: object = None) -> Callable[P, Events]: ...
    @overload
    def __get__(self, resource: Resource[Awaiting], owner: object = None) -> Callable[P, AsyncEvents]: ...
    def __get__(self, resource: Resource[Any] | None, owner: object = None) -> Any:
        """Return the method of a client."""
        return _bound(resource, self._method, lambda driver, followed: _FOLLOWED[type(driver)](followed, driver))


def _bound(resource: Resource[Any] | None, method: Callable[..., Any], run: Callable[[Any, Any], Any]) -> Any:
    if resource is None:  # on the class, as documentation is read
        return method
    driver, made = resource._driver, MethodType(method, resource)
    return update_wrapper(lambda *given, **named: run(driver, made(*given, **named)), made)


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
