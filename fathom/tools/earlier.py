"""The texts that an earlier run has read: the first corpus of a run that follows up on it.

The texts keep their source, so a follow-up cites the page or document itself. The follow-up stores them with its own
raw outputs, so it can be checked even if the earlier run is gone. The same holds for runs before that one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from fathom.config.groups import EXTRACTIVE, Role
from fathom.errors import StoreError, ToolError, ToolRejected
from fathom.evidence.provenance import PROVENANCE, Provenance, read, results_of
from fathom.evidence.stored import StoredText, locate, stored_texts
from fathom.models import Call, Note, PlanStep
from fathom.storage.store import RunFolder
from fathom.text.urls import canonical_url
from fathom.tools.pages import WebPage

_NOTES = TypeAdapter(list[Note])


class _Files(NamedTuple):
    """The files that are read of a run: its record, its notes, and its raw outputs by name."""

    record: Provenance
    notes: list[Note]
    outputs: dict[str, bytes]


TextsFor = Callable[[str, int], Awaitable[list[StoredText]]]
"""Returns the texts of the sources that are closest to a query, and of at most so many."""


@dataclass(frozen=True)
class EarlierRuns:
    """The earlier runs that an asker may read. `texts` finds the sources closest to a query; a replay has none."""

    asker: str
    texts: TextsFor | None


class EarlierRun:
    """The texts and the notes of a finished run. As a reader of pages, it returns pages that the run read in full."""

    name = "earlier_run"

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder.folder
        self._folder = folder
        self._files: _Files | None = None
        self._texts: list[StoredText] | None = None
        self._reading = asyncio.Lock()

    async def texts(self) -> list[StoredText]:
        """Return its texts, each once; for a source that was read in full, only the full text.

        Raises:
            ToolRejected: its files are gone or damaged.
        """
        record, _, outputs = await self._read()
        if self._texts is None:
            found = stored_texts(outputs, results_of(record))
            whole = {text.source.source_id for text in found if text.source.full}
            self._texts = [text for text in found if text.source.full or text.source.source_id not in whole]
        return self._texts

    async def noted(self) -> tuple[list[PlanStep], dict[str, list[Call]], list[Note]]:
        """Return its steps, their calls by step id, and the notes of a model; none if files are gone or damaged."""
        calls: dict[str, list[Call]] = {}
        try:
            record, notes, outputs = await self._read()
            if record.run.models.get(Role.compressor.value) == EXTRACTIVE:
                return [], {}, []
            for made, result in zip(record.calls, results_of(record), strict=True):
                if (name := result.artifact_file) and (found := locate(name, outputs[name], result.sources)):
                    call = Call(
                        result=result.model_copy(update={"sources": [text.source() for text, _ in found]}),
                        useful=made.useful,
                        narrowed_tokens=made.narrowed_tokens,
                        useless=made.useless,
                    )
                    calls.setdefault(made.step_id, []).append(call)
        except (ToolRejected, StoreError):  # its notes are then made again
            return [], {}, []
        return record.plan.steps, calls, notes

    async def _read(self) -> _Files:
        async with self._reading:
            if self._files is None:
                try:
                    record, _ = read(await self._folder.load(PROVENANCE))
                    names = sorted({call.artifact_file for call in record.calls if call.artifact_file})
                    outputs = dict(zip(names, await asyncio.gather(*map(self._folder.load, names)), strict=True))
                    notes = _NOTES.validate_python(await self._folder.load_json("notes.json"))
                except (FileNotFoundError, StoreError, ValidationError) as error:
                    raise ToolRejected(
                        f"The earlier run cannot be read any more: {error}.",
                        next_step="restore its folder, or ask the question by itself",
                    ) from error
                self._files = _Files(record, notes, outputs)
            return self._files

    async def read(self, urls: Sequence[str]) -> tuple[list[WebPage], dict[str, ToolError]]:
        """Return the pages, of some, that the run has read in full; missing pages are no failures."""
        try:
            texts = await self.texts()
        except ToolRejected:  # the web has them
            texts = []
        whole = {canonical_url(text.source.url): text for text in texts if text.source.full}
        known = ((url, whole.get(canonical_url(url))) for url in urls)
        pages = [
            WebPage(
                url=url,
                title=text.source.title,
                published=text.source.published,
                whole=text.text,
                fields=text.source.fields,
                kept_since=text.retrieved,
            )
            for url, text in known
            if text and text.source.kind == "web"
        ]
        return pages, {}
