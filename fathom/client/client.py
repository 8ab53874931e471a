"""Clients of a Fathom server: `Fathom` waits for each answer, `AsyncFathom` is awaited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from fathom.client.core import Awaiting, Blocking, Core, Pause, Program, made, path
from fathom.client.following import D, FinishedRun, Following, Handler, Resource, endpoint, following
from fathom.client.resources import (
    Batch,
    BatchList,
    BatchRequest,
    BatchSummary,
    Estimate,
    Status,
    TemplateList,
    TemplateSummary,
    Watch,
    WatchChange,
    WatchHistory,
    WatchList,
    WatchRequest,
    WatchRun,
)
from fathom.client.runs import Runs, request_of, start
from fathom.client.shapes import Corpus, CorpusList, CorpusSummary, Me, Run
from fathom.config.environment import Environment


class _Client(Resource[D]):
    _kind: type[D]

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout: float = 60.0, retries: int = 6
    ) -> None:
        known, driver = Environment.read(), self._kind()
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
            FathomError: the server refuses the request or does not answer. A run that fails is returned; `state` says
                so.
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

        The run starts with the first step of the iteration. After the last event, `run` of the iterator is the run with
        its report. It takes the arguments of `research`.

        Raises:
            FathomError: the server refuses the request or does not answer.
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
            name: by default derived from the question.
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
        return self._core.ask(Watch, "POST", "/watches", json=request)

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
        return self._core.ask(Estimate, "POST", "/estimates", json=request)

    @endpoint
    def me(self) -> Program[Me]:
        """Return who you are to the server, and what you may use."""
        return self._core.ask(Me, "GET", "/me")

    @endpoint
    def status(self) -> Program[Status]:
        """Return what the server's runs use: models, tools, caps."""
        return self._core.ask(Status, "GET", "/status")


class Fathom(_Client[Blocking]):
    """A client that waits for each answer. It may be used in several threads.

    Args:
        url: address of the server; by default FATHOM_URL, else http://127.0.0.1:8700.
        token: an API token; by default FATHOM_TOKEN. A server that only this machine reaches needs none.
        timeout: seconds without an answer, or a part of one, after which a request is given up.
        retries: how often a request is sent again after a failure that may pass, where that can do no harm.
    """

    _kind = Blocking

    def close(self) -> None:
        """Close the connections. Runs go on."""
        self._driver.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class AsyncFathom(_Client[Awaiting]):
    """A client with the arguments of `Fathom`, and with its methods as coroutines."""

    _kind = Awaiting

    async def close(self) -> None:
        """Close the connections. Runs go on."""
        await self._driver.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()


LOOK_SECONDS = 3.0
"""Seconds between two polls of a batch."""


class Watches(Resource[D]):
    """Questions that are asked again on a schedule."""

    @endpoint
    def list(self) -> Program[Sequence[Watch]]:
        """Return your watches, by name."""
        return (yield from self._core.ask(WatchList, "GET", "/watches")).watches

    @endpoint
    def get(self, name: str) -> Program[Watch]:
        """Return a watch."""
        return self._core.ask(Watch, "GET", path("watches", name))

    @endpoint
    def pause(self, name: str) -> Program[Watch]:
        """Have a watch start no more runs."""
        return self._core.ask(Watch, "PATCH", path("watches", name), json=WatchChange(state="paused"))

    @endpoint
    def resume(self, name: str) -> Program[Watch]:
        """Have a watch start runs again."""
        return self._core.ask(Watch, "PATCH", path("watches", name), json=WatchChange(state="active"))

    @endpoint
    def remove(self, name: str) -> Program[None]:
        """Remove a watch. Its runs stay."""
        yield from self._core.send("DELETE", path("watches", name))

    @endpoint
    def run(self, name: str) -> Program[Run]:
        """Start a run of a watch now, besides its schedule."""
        return self._core.ask(Run, "POST", path("watches", name, "run"))

    @endpoint
    def history(self, name: str, *, limit: int = 50) -> Program[Sequence[WatchRun]]:
        """Return the runs of a watch, the newest first, with what changed in each."""
        place = path("watches", name, "history")
        return (yield from self._core.ask(WatchHistory, "GET", place, params={"limit": limit})).runs


class Batches(Resource[D]):
    """Many questions at once, each in a run of its own."""

    @endpoint
    def start(
        self,
        questions: Sequence[str | Mapping[str, Any]],
        *,
        settings: Mapping[str, Any] | None = None,
        template: str | None = None,
        at_once: int = 8,
        budget: Mapping[str, float] | None = None,
        name: str = "batch",
    ) -> Program[Batch]:
        """Start a batch and return it at once.

        Args:
            questions: each as text, or as `question` with `settings` of its own.
            settings: settings of every question.
            template: the name of a template.
            at_once: maximum number of questions researched at the same time.
            budget: caps over all questions together: max_usd, max_tokens, max_calls.
            name: what the id of the batch begins with.
        """
        request = made(
            BatchRequest,
            questions=[*questions],
            settings=dict(settings or {}),
            template=template,
            at_once=at_once,
            budget=dict(budget or {}),
            name=name,
        )
        return self._core.ask(Batch, "POST", "/batches", json=request)

    @endpoint
    def list(self) -> Program[Sequence[BatchSummary]]:
        """Return the batches that you may see, the newest first."""
        return (yield from self._core.ask(BatchList, "GET", "/batches")).batches

    @endpoint
    def get(self, batch_id: str) -> Program[Batch]:
        """Return a batch with a row for each question."""
        return self._core.ask(Batch, "GET", path("batches", batch_id))

    @endpoint
    def wait(self, batch_id: str) -> Program[Batch]:
        """Wait until a batch has ended, and return it."""
        while True:
            batch = yield from self._core.ask(Batch, "GET", path("batches", batch_id))
            if batch.state not in ("queued", "running"):
                return batch
            yield Pause(LOOK_SECONDS)

    @endpoint
    def cancel(self, batch_id: str) -> Program[None]:
        """End a batch. What has finished stays."""
        yield from self._core.send("DELETE", path("batches", batch_id))


class Templates(Resource[D]):
    """Kinds of research."""

    @endpoint
    def list(self) -> Program[Sequence[TemplateSummary]]:
        """Return the templates, by name."""
        return (yield from self._core.ask(TemplateList, "GET", "/templates")).templates

    @endpoint
    def get(self, name: str) -> Program[dict[str, Any]]:
        """Return what a template sets."""
        return self._core.ask(dict[str, Any], "GET", path("templates", name))


class Corpora(Resource[D]):
    """Files that people uploaded for runs to read."""

    @endpoint
    def list(self) -> Program[Sequence[CorpusSummary]]:
        """Return the corpora that you may read, by name."""
        return (yield from self._core.ask(CorpusList, "GET", "/corpora")).corpora

    @endpoint
    def get(self, name: str) -> Program[Corpus]:
        """Return a corpus with its files."""
        return self._core.ask(Corpus, "GET", path("corpora", name))

    @endpoint
    def upload(
        self, name: str, files: Iterable[str | Path | tuple[str, bytes]], *, shared: bool = False
    ) -> Program[Corpus]:
        """Make a corpus of files.

        Args:
            name: of the corpus.
            files: paths, or names with contents.
            shared: whether everybody who may read may read it.
        """
        fields = [("name", (None, name.encode())), ("shared", (None, str(shared).lower().encode()))]
        return self._core.ask(Corpus, "POST", "/corpora", parts=[*fields, *_contents(files)])

    @endpoint
    def add(self, name: str, files: Iterable[str | Path | tuple[str, bytes]]) -> Program[Corpus]:
        """Add files to a corpus. One replaces the file of the same name."""
        return self._core.ask(Corpus, "PUT", path("corpora", name, "files"), parts=_contents(files))

    @endpoint
    def delete(self, name: str) -> Program[None]:
        """Remove a corpus. Runs that have begun to read it go on."""
        yield from self._core.send("DELETE", path("corpora", name))


def _contents(files: Iterable[str | Path | tuple[str, bytes]]) -> list[tuple[str, tuple[str | None, bytes]]]:
    found = [file if isinstance(file, tuple) else (Path(file).name, Path(file).read_bytes()) for file in files]
    return [("files", file) for file in found]
