"""Clients of a Fathom server: `Fathom` waits for each answer, `AsyncFathom` is awaited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from fathom.client.core import Core, Program, made
from fathom.client.drivers import Awaiting, Blocking
from fathom.client.endpoints import D, Resource, endpoint, following
from fathom.client.finished import FinishedRun
from fathom.client.following import Following, Handler
from fathom.client.resources import Batches, Corpora, Templates, Watches
from fathom.client.runs import Runs, request_of, start
from fathom.client.shapes import Me
from fathom.client.standing import Estimate, Status, Watch, WatchRequest
from fathom.config.environment import Environment


class _Client(Resource[D]):
    def __init__(self, driver: D, url: str | None, token: str | None, timeout: float, retries: int) -> None:
        known = Environment.read()
        super().__init__(Core(url or known.server, token or known.token, timeout, retries), driver)
        self.runs: Runs[D] = Runs(self._core, driver)
        self.watches: Watches[D] = Watches(self._core, driver)
        self.batches: Batches[D] = Batches(self._core, driver)
        self.templates: Templates[D] = Templates(self._core, driver)
        self.corpora: Corpora[D] = Corpora(self._core, driver)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._core.url!r})"

    @endpoint
    def research(
        self,
        question: str,
        *,
        settings: Mapping[str, Any] | None = None,
        template: str | None = None,
        corpora: Sequence[str] = (),
        shared: bool = False,
        on_event: Handler | None = None,
        idempotency_key: str | None = None,
    ) -> Program[FinishedRun]:
        """Research a question, wait for the end and return the run with its report.

        Args:
            question: what to research.
            settings: settings of the run by name, as docs/settings.md lists them.
            template: the name of a template.
            corpora: names of uploaded corpora to read.
            shared: whether everybody who may read may see, answer and steer the run.
            on_event: called with each event; with `AsyncFathom` it may be a coroutine function.
            idempotency_key: with the same key, the same run is returned again.

        Raises:
            FathomError: the server refuses, or it does not answer. A run that fails is returned; `state` says so.
        """
        begin = start(self._core, request_of(question, settings, template, corpora, shared), idempotency_key)
        followed = Following(self._core, begin)
        if on_event:
            followed.handlers.append(("progress", on_event))
        return followed.events()

    @following
    def stream(
        self,
        question: str,
        *,
        settings: Mapping[str, Any] | None = None,
        template: str | None = None,
        corpora: Sequence[str] = (),
        shared: bool = False,
        idempotency_key: str | None = None,
    ) -> Following:
        """Research a question and iterate over its events as they come, each once, however often a connection breaks.

        The run starts with the first step of the iteration. After the last one, `run` of the iterator is the run with
        its report. The arguments are those of `research`.

        Raises:
            FathomError: the server refuses, or it does not answer.
        """
        begin = start(self._core, request_of(question, settings, template, corpora, shared), idempotency_key)
        return Following(self._core, begin)

    @endpoint
    def watch(
        self,
        question: str,
        *,
        every: str | None = None,
        cron: str | None = None,
        timezone: str = "UTC",
        name: str = "",
        settings: Mapping[str, Any] | None = None,
        template: str | None = None,
    ) -> Program[Watch]:
        """Ask a question again on a schedule.

        Args:
            question: what to research each time.
            every: how often, such as 6h or 1d; give either this or `cron`.
            cron: minute, hour, day, month and weekday.
            timezone: the time zone of `cron`.
            name: by default made of the question.
            settings: settings of each run.
            template: the name of a template.
        """
        request = made(
            WatchRequest,
            question=question,
            every=every,
            cron=cron,
            timezone=timezone,
            name=name,
            settings=dict(settings or {}),
            template=template,
        )
        return self._core.ask(Watch, self._core.request("POST", "/watches", json=request))

    @endpoint
    def estimate(
        self,
        question: str,
        *,
        settings: Mapping[str, Any] | None = None,
        template: str | None = None,
        corpora: Sequence[str] = (),
    ) -> Program[Estimate]:
        """Return what a run would use and cost, by phase, without starting it."""
        request = request_of(question, settings, template, corpora, shared=False)
        return self._core.ask(Estimate, self._core.request("POST", "/estimates", json=request))

    @endpoint
    def me(self) -> Program[Me]:
        """Return who you are to the server, and what you may use."""
        return self._core.ask(Me, self._core.request("GET", "/me"))

    @endpoint
    def status(self) -> Program[Status]:
        """Return what the server's runs use: models, tools, caps."""
        return self._core.ask(Status, self._core.request("GET", "/status"))


class Fathom(_Client[Blocking]):
    """A client that waits for each answer. It may be used in several threads.

    Args:
        url: address of the server; by default FATHOM_URL, else http://127.0.0.1:8700.
        token: an API token; by default FATHOM_TOKEN. A server that only this machine reaches needs none.
        timeout: seconds without an answer, or a part of one, after which a request is given up.
        retries: how often a request is sent again after a failure that may pass, where that can do no harm.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout: float = 60.0, retries: int = 6
    ) -> None:
        super().__init__(Blocking(), url, token, timeout, retries)

    def close(self) -> None:
        """Close the connections. Runs go on."""
        self._driver.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncFathom(_Client[Awaiting]):
    """A client whose methods are awaited; those of `Fathom` otherwise.

    Args:
        url: address of the server; by default FATHOM_URL, else http://127.0.0.1:8700.
        token: an API token; by default FATHOM_TOKEN. A server that only this machine reaches needs none.
        timeout: seconds without an answer, or a part of one, after which a request is given up.
        retries: how often a request is sent again after a failure that may pass, where that can do no harm.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout: float = 60.0, retries: int = 6
    ) -> None:
        super().__init__(Awaiting(), url, token, timeout, retries)

    async def close(self) -> None:
        """Close the connections. Runs go on."""
        await self._driver.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
