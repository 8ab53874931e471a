"""What a server has besides runs: watches, batches, templates, corpora."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fathom.client.core import Core, Pause, Program, made, path
from fathom.client.endpoints import D, Resource, endpoint
from fathom.client.shapes import Corpus, CorpusList, CorpusSummary, Run
from fathom.client.standing import (
    Batch,
    BatchList,
    BatchRequest,
    BatchSummary,
    TemplateList,
    TemplateSummary,
    Watch,
    WatchChange,
    WatchHistory,
    WatchList,
    WatchRun,
)

LOOK_SECONDS = 3.0
"""Seconds between two looks at a batch that is waited for."""


class Watches(Resource[D]):
    """Questions that are asked again on a schedule."""

    @endpoint
    def list(self) -> Program[Sequence[Watch]]:
        """Return your watches, by name."""
        return (yield from self._core.ask(WatchList, self._core.request("GET", "/watches"))).watches

    @endpoint
    def get(self, name: str) -> Program[Watch]:
        """Return a watch."""
        return self._core.ask(Watch, self._core.request("GET", path("watches", name)))

    @endpoint
    def pause(self, name: str) -> Program[Watch]:
        """Have a watch start no more runs."""
        return _changed(self._core, name, WatchChange(state="paused"))

    @endpoint
    def resume(self, name: str) -> Program[Watch]:
        """Have a watch start runs again."""
        return _changed(self._core, name, WatchChange(state="active"))

    @endpoint
    def remove(self, name: str) -> Program[None]:
        """Remove a watch. Its runs stay."""
        yield from self._core.send(self._core.request("DELETE", path("watches", name)))

    @endpoint
    def run(self, name: str) -> Program[Run]:
        """Start a run of a watch now, besides its schedule."""
        return self._core.ask(Run, self._core.request("POST", path("watches", name, "run")))

    @endpoint
    def history(self, name: str, *, limit: int = 50) -> Program[Sequence[WatchRun]]:
        """Return the runs of a watch, the newest first, with what changed in each."""
        request = self._core.request("GET", path("watches", name, "history"), params={"limit": limit})
        return (yield from self._core.ask(WatchHistory, request)).runs


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
            at_once: most questions that are researched at the same time.
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
        return self._core.ask(Batch, self._core.request("POST", "/batches", json=request))

    @endpoint
    def list(self) -> Program[Sequence[BatchSummary]]:
        """Return the batches that you may see, the newest first."""
        return (yield from self._core.ask(BatchList, self._core.request("GET", "/batches"))).batches

    @endpoint
    def get(self, batch_id: str) -> Program[Batch]:
        """Return a batch with a row for each question."""
        return self._core.ask(Batch, self._core.request("GET", path("batches", batch_id)))

    @endpoint
    def wait(self, batch_id: str) -> Program[Batch]:
        """Wait until a batch goes on no longer, and return it."""
        while True:
            batch = yield from self._core.ask(Batch, self._core.request("GET", path("batches", batch_id)))
            if batch.state not in ("queued", "running"):
                return batch
            yield Pause(LOOK_SECONDS)

    @endpoint
    def cancel(self, batch_id: str) -> Program[None]:
        """End a batch. What has finished stays."""
        yield from self._core.send(self._core.request("DELETE", path("batches", batch_id)))


class Templates(Resource[D]):
    """Kinds of research."""

    @endpoint
    def list(self) -> Program[Sequence[TemplateSummary]]:
        """Return the templates, by name."""
        return (yield from self._core.ask(TemplateList, self._core.request("GET", "/templates"))).templates

    @endpoint
    def get(self, name: str) -> Program[dict[str, Any]]:
        """Return what a template sets."""
        return self._core.ask(dict[str, Any], self._core.request("GET", path("templates", name)))


class Corpora(Resource[D]):
    """Files that people uploaded for runs to read."""

    @endpoint
    def list(self) -> Program[Sequence[CorpusSummary]]:
        """Return the corpora that you may read, by name."""
        return (yield from self._core.ask(CorpusList, self._core.request("GET", "/corpora"))).corpora

    @endpoint
    def get(self, name: str) -> Program[Corpus]:
        """Return a corpus with its files."""
        return self._core.ask(Corpus, self._core.request("GET", path("corpora", name)))

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
        fields = {"name": name, "shared": str(shared).lower()}
        return self._core.ask(Corpus, self._core.request("POST", "/corpora", data=fields, files=_contents(files)))

    @endpoint
    def add(self, name: str, files: Iterable[str | Path | tuple[str, bytes]]) -> Program[Corpus]:
        """Add files to a corpus. One replaces the file of the same name."""
        request = self._core.request("PUT", path("corpora", name, "files"), files=_contents(files))
        return self._core.ask(Corpus, request)

    @endpoint
    def delete(self, name: str) -> Program[None]:
        """Remove a corpus. Runs that have begun to read it go on."""
        yield from self._core.send(self._core.request("DELETE", path("corpora", name)))


def _changed(core: Core, name: str, change: WatchChange) -> Program[Watch]:
    return core.ask(Watch, core.request("PATCH", path("watches", name), json=change))


def _contents(files: Iterable[str | Path | tuple[str, bytes]]) -> list[tuple[str, tuple[str, bytes]]]:
    found = [file if isinstance(file, tuple) else (Path(file).name, Path(file).read_bytes()) for file in files]
    return [("files", file) for file in found]
