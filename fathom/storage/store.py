"""The artifact store: every raw tool output, whole, on a local disk or an object store.

`ArtifactStore` is files below a root. `RunFolder` is the folder of one run in it; no two runs share one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_jsonable_python

from fathom.clock import now
from fathom.config.secrets import without_credentials
from fathom.errors import InvalidInput, RunBusy, StoreError
from fathom.models import Note, Plan, Report, RunManifest, RunResult, Source, ToolOutput
from fathom.storage.atomic import AtomicFiles, Flush, Outages
from fathom.storage.journal import SOON_SECONDS, FileChange, Journal, RestoredFiles, left_in, restore
from fathom.storage.names import RESPONSES, folder_names
from fathom.text.urls import source_ids

RUNS, BATCHES = "research_artifacts", "research_batches"
CHANGED = ".runs/changed"  # processes that add or remove runs leave a note there, for the index of runs
MANIFEST, PLAN, NOTES, RESULT = "run.json", "plan.json", "notes.json", "result.json"
REPORT, REPORT_TEXT, REPORT_PAGE = "report.json", "report.md", "report.html"
EXCHANGES = "exchanges.jsonl"  # what models were sent and answered
"""The files in a run's folder, beside its tool outputs."""
PARTIAL = "partial"  # in the manifest of a run that is being removed or imported, instead of `run_key`
NOTED = "%Y%m%dT%H%M%S"  # the time in the name of a note
REMOVED_AT_ONCE = 1_000  # files, the most that S3 takes in one request

T = TypeVar("T")
_reader: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)
"""Returns what reads a kind of data. Making it takes 10 ms for a result, and a list of runs reads one result each."""


class Keeper(Protocol):
    """What keeps the lease of a run."""

    @property
    def certain(self) -> bool:
        """Whether it is certain at this moment that this process owns the run."""

    def confirm(self) -> None:
        """Wait until it is certain that this process owns the run; raise an error once it does not. Blocks."""


class ArtifactStore:
    """Files below a root, a folder or an fsspec address such as `s3://bucket/prefix`; paths are relative to it.

    Its methods raise StoreError when the store fails. While an object store does not answer, is overloaded or reports
    an error of its own, they try again for up to `patience` seconds, and call `say` once per outage. The store of a run
    changes nothing while its process does not certainly own the run: see `guard`.

    Raises:
        InvalidInput: fsspec cannot open the root, or its address contains credentials.
    """

    def __init__(self, root: str, patience: float = 0, say: Callable[[str], object] = lambda line: None) -> None:
        if without_credentials(root) != root:
            raise InvalidInput(
                "The address of the artifact store contains a user name or password, which would be shown and stored.",
                next_step="set them in the environment: AWS_..., or FSSPEC_{PROTOCOL}_{OPTION} for other stores",
            )
        try:
            self._files = AtomicFiles(root)
        except (ImportError, ValueError, OSError) as error:
            raise InvalidInput(
                f"The artifact store {root!r} cannot be opened: {error}.",
                next_step="choose a folder or an address such as s3://bucket/prefix",
            ) from error
        self.local = self._files.local
        self._keeper: Keeper | None = None
        self._outages = Outages(self._files, patience, say)
        self._journal: Journal | None = None

    async def open_journal(self, folder: str) -> None:
        """Restore what earlier attempts at a run have left in the folder of its journals, and keep another one there.

        From now on, what is written, appended and removed waits for other changes, and all of it is flushed at once
        (`fathom.storage.journal`). Who must be certain of it calls `commit`; what is read is what was written.
        Without a journal, as on an object store, each change is certain when its method returns.
        """
        if self.local:
            path = await self._run("write", folder, lambda folder: restore(self._files, folder))
            self._journal = Journal(
                self._files, path, partial(self._run, "write"), lambda: self._keeper is None or self._keeper.certain
            )

    async def as_restored(self, folder: str) -> ArtifactStore:
        """Return the store as it will be once the journals in a folder are restored, which others may be doing now.

        Raises:
            StoreError: a file has lost what the journals rely on, so they cannot be restored.
        """
        if not self.local or not await self.list(folder):
            return self
        with suppress(FileNotFoundError):  # they have been restored
            left = await self._run("read", folder, lambda folder: left_in(self._files, folder))
            store = copy(self)
            store._files = RestoredFiles(self.address(), left)
            store._files.confirm = self._files.confirm
            return store
        return self

    async def close_journal(self, last: Mapping[str, bytes] = {}) -> None:
        """Flush the files that the journal was kept for, remove it, and only then write the last files, by path."""
        if self._journal:
            await self._journal.close(last)
            self._journal, last = None, {}
        for path, data in last.items():
            await self.write(path, data)

    async def commit(self) -> None:
        """Return once all changes so far are on the disk: nothing that follows from them leaves the process before.

        Raises:
            RunBusy: another process writes the same files.
        """
        if self._journal:
            await self._journal.commit()

    def hasten(self) -> None:
        """Let all changes so far be on the disk soon: what would cost something to do again."""
        if self._journal:
            self._journal.flush_in(SOON_SECONDS)

    async def _seen(self, path: str) -> None:
        """Let the changes of a file, or of files in a folder, be seen there."""
        if self._journal and self._journal.concerns(path):
            await self._journal.commit()

    def guard(self, keeper: Keeper) -> None:
        """Change nothing while it is not certain that this process owns the run."""
        self._keeper = keeper
        self._files.confirm = keeper.confirm

    async def confirm(self) -> None:
        """Return at once while it is certain that this process owns the run, else when it is.

        Raises:
            RunBusy: another process has taken it.
        """
        while self._keeper and not self._keeper.certain:
            await asyncio.to_thread(self._keeper.confirm)

    def impatient(self) -> ArtifactStore:
        """Return the same store, guarded in the same way, without patience."""
        store = ArtifactStore(self.address())
        if self._keeper:
            store.guard(self._keeper)
        return store

    def address(self, path: str = "") -> str:
        """Return the absolute path or URL of a file, or of the root."""
        return self._files.address(path)

    async def read(self, path: str) -> bytes:
        """Return the bytes of a file.

        Raises:
            FileNotFoundError: there is no such file.
        """
        if self._journal and (data := self._journal.written(path)) is not None:
            return data
        await self._seen(path)
        return await self._run("read", path, self._files.read)

    async def stored(self, kind: type[T], path: str, how: str = "restore the file, or run again") -> T | None:
        """Return the data of a JSON file; None if it does not exist.

        Raises:
            StoreError: it cannot be read, or is of another kind or version; `how` is the next step.
        """
        try:
            read: T = _reader(kind).validate_json(await self.read(path))
            return read
        except FileNotFoundError:
            return None
        except ValidationError as error:
            said = f"{self.address(path)} is damaged, or not of this version: {error.errors()[0]['msg']}."
            raise StoreError(said, next_step=how) from error

    async def versions(self, paths: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """Return for each file what differs once it was changed, empty if it is not there; {} from an object store."""
        if not self.local:
            return {}
        found = await self._run("read", "", lambda _: self._files.versions([*map(_checked, paths)]))
        return dict(zip(paths, found, strict=True))

    async def read_from(self, path: str, offset: int) -> bytes:
        """Return the bytes of a file that only grows, from an offset on; raises as `read` does."""
        await self._seen(path)
        return await self._run("read", path, lambda path: self._files.read_from(path, offset))

    async def write(self, path: str, data: bytes, *, flush: Flush = Flush.everything) -> None:
        """Write or replace a file atomically; `flush` says what a power cut may leave where no journal keeps it."""
        if self._journal:
            self._journal.add(FileChange(_checked(path), data))
        else:
            await self._run("write", path, lambda path: self._files.write(path, data, flush=flush))

    async def append(self, path: str, data: bytes, at: int) -> None:
        """Append bytes to a file that has `at` bytes, or create it.

        Raises:
            RunBusy: it has another length, because another process writes it; with a journal, `commit` raises it.
        """
        if self._journal:
            self._journal.add(FileChange(_checked(path), data, at))
            return
        if self._files.local:
            length = await self._run("write", path, lambda path: self._files.append_local(path, data, at))
        else:
            before = b""
            with suppress(FileNotFoundError):
                before = await self.read(path)
            if (length := len(before)) == at:
                await self.write(path, before + data)
        if length != at:
            raise RunBusy(
                f"{self.address(path)} has {length:,} bytes instead of {at:,}: another process writes it.",
                next_step="see fathom runs",
            )

    async def create(self, path: str, data: bytes, *, private: bool = False) -> bool:
        """Write a new file. Returns False, and writes nothing, when there is one with other bytes.

        The same bytes count as our own: the reply to an earlier attempt was lost. A `private` file on a local disk can
        be read only by the user whose process has made it.
        """
        await self.commit()
        if await self._run("write", path, lambda path: self._files.create(path, data, private=private)):
            return True
        with suppress(FileNotFoundError):
            return await self.read(path) == data
        return False

    async def make_private(self, path: str) -> None:
        """Let a file of this user be read as if it had been created `private`."""
        await self._run("write", path, self._files.make_private)

    async def remove(self, path: str) -> None:
        """Remove a file, if there is one."""
        if self._journal:
            self._journal.add(FileChange(_checked(path), None))
        else:
            await self._run("write", path, self._files.remove)

    async def sizes(self, folder: str) -> dict[str, int]:
        """Return the bytes of each file below a folder, by its path; hidden files count, none is read."""
        await self._seen(folder)
        return await self._run("read", folder, self._files.sizes)

    async def remove_all(self, paths: Sequence[str]) -> None:
        """Remove up to `REMOVED_AT_ONCE` files, and on a local disk the folders that this leaves empty. An object store
        may refuse some without a word: see `sizes` afterwards."""
        await self.commit()
        if paths:
            await self._run("write", paths[0], lambda _first: self._files.remove_all(paths))

    async def exists(self, path: str) -> bool:
        """Return whether there is a file or folder of that path."""
        await self._seen(path)
        return await self._run("read", path, self._files.exists)

    async def list(self, folder: str) -> list[str]:
        """Return the sorted names of the files and folders in a folder; none when there is no such folder."""
        await self._seen(folder)
        try:
            return await self._run("read", folder, self._files.list)
        except FileNotFoundError:
            return []

    async def exclusive(self) -> bool:
        """Return whether `create` has only one winner in a race, which some S3 servers do not guarantee."""
        return await self._run("write", "", lambda _root: self._files.exclusive())

    async def check_writable(self) -> None:
        """Create and remove a probe file.

        Raises:
            InvalidInput: the root cannot be written.
        """
        try:
            await self.exclusive()
        except StoreError as error:
            raise InvalidInput(error.message, next_step=error.next_step) from error

    async def _run(self, action: str, path: str, blocking: Callable[[str], T]) -> T:
        try:
            return await self._outages.call(_checked(path) if path else path, blocking)
        except self._files.failures as error:
            if action == "read" and isinstance(error, (FileNotFoundError, NotADirectoryError)):
                raise FileNotFoundError(self.address(path)) from error
            raise StoreError(
                f"The artifact store cannot {action} {self.address(path)}: {str(error).rstrip('.')}.",
                next_step="check the folder's permissions and the disk's free space, or choose another --artifacts"
                if self._files.local
                else "check the bucket, credentials (AWS_*) and endpoint, or choose another --artifacts",
            ) from error


def _checked(path: str) -> str:
    """Return a path that stays below the root."""
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise InvalidInput(f"{path!r} is not a path in the artifact store.", next_step="name a file of the run")
    return path


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run, `research_artifacts/{plan title}` in the store; its files are named without a path."""

    store: ArtifactStore
    folder: str

    @classmethod
    async def claim(
        cls, store: ArtifactStore, plan_title: str, run_id: str, run_key: str, manifest: Mapping[str, object]
    ) -> RunFolder:
        """Return the folder of a run; a resumed run, which has the same run key, gets its earlier folder.

        The run that creates `run.json` owns the folder; the first run of a plan title owns the folder named after it.

        Raises:
            StoreError: the store failed, or all of these folders belong to other runs.
        """
        title, *variants = folder_names(plan_title, run_id)
        record = json_bytes({**manifest, "run_id": run_id, "run_key": run_key})
        first = cls(store, f"{RUNS}/{title}")
        # If a race can have several winners, runs must not compete for one name: each uses its own id.
        if await store.exclusive() and await first._take(record, run_key):
            return first
        for name in await store.list(RUNS):  # resumed under another run id
            run = cls(store, f"{RUNS}/{name}")
            if name.startswith(f"{title}__") and await run._owner() == run_key:
                return run
        for name in variants:
            run = cls(store, f"{RUNS}/{name}")
            if await run._take(record, run_key):
                return run
        raise StoreError(f"{first.url} and its variants belong to other runs.", next_step="choose another --artifacts")

    async def _take(self, record: bytes, run_key: str) -> bool:
        return await self.create_manifest(record) or await self._owner() == run_key

    async def _owner(self) -> str | None:
        """Return the run key of the folder's run; None when it is unknown."""
        try:
            manifest = await self.load_json(MANIFEST)
        except (FileNotFoundError, StoreError):
            return None
        return manifest.get("run_key") if isinstance(manifest, dict) else None

    async def create_manifest(self, data: bytes) -> bool:
        """Claim the folder for a run by writing its manifest; return False if another run had it."""
        await note_change(self.store, self.folder)
        return await self.store.create(self._path(MANIFEST), data)

    async def replace_manifest(self, data: bytes) -> None:
        """Replace the manifest, to hand the folder to another run or to mark the run as incomplete or complete."""
        await note_change(self.store, self.folder)
        await self.store.write(self._path(MANIFEST), data)

    @property
    def url(self) -> str:
        """The absolute path or URL of the folder."""
        return self.store.address(self.folder)

    def path_of(self, name: str) -> str:
        """Return the absolute path or URL of a file of the run."""
        return self.store.address(self._path(name))

    async def save_raw(self, name: str, output: ToolOutput) -> tuple[str, int]:
        """Store a whole tool output, as JSON when it is structured, else as text. Returns SHA-256 and bytes."""
        data = "\n\n".join(result.text for result in output.results).encode()
        if output.structured:
            data = json_bytes({"results": output.results, "failures": output.failures}, indent=1)
        return await self.save(name, data), len(data)

    async def save(self, name: str, data: bytes) -> str:
        """Store a file, and return its SHA-256."""
        await self.store.write(self._path(name), data)
        return hashlib.sha256(data).hexdigest()

    async def read(self, name: str, sources: Sequence[Source] = ()) -> ToolOutput:
        """Return a stored tool output; a text file names no sources, and without any counts as the source itself.

        Raises:
            FileNotFoundError: there is no such file.
            StoreError: it cannot be read, or is not a tool output.
        """
        data = await self.load(name)
        try:
            if name.endswith(".json"):
                return ToolOutput.model_validate_json(data)
            text = data.decode()
        except ValueError as error:
            raise self._damaged(name, error) from error
        url = f"artifact:{name}"
        stand_in = Source(source_id=source_ids([url])[url], url=url, title=name, kind="document")
        results = [source.with_text(text) for source in sources or [stand_in]]
        return ToolOutput(results=results, structured=False)

    async def load(self, name: str) -> bytes:
        """Return the bytes of a file; raises as the store's `read` does."""
        return await self.store.read(self._path(name))

    async def manifest(self) -> RunManifest | None:
        """Return the run's manifest; None before its plan has a title."""
        return await self.stored(RunManifest, MANIFEST)

    async def plan(self) -> Plan | None:
        """Return the plan with the status of its steps; None if there is none yet."""
        return await self.stored(Plan, PLAN)

    async def notes(self) -> list[Note] | None:
        """Return the notes; None before the first round."""
        return await self.stored(list[Note], NOTES)

    async def result(self) -> RunResult | None:
        """Return the run's result, with the present places of its files; None until the run has ended."""
        if (found := await self.stored(RunResult, RESULT)) is None:
            return None
        report = self.path_of(REPORT_TEXT) if found.report else None
        return found.model_copy(update={"artifacts": self.url, "report": report})

    async def report(self) -> Report | None:
        """Return the report as data; None if there is none."""
        return await self.stored(Report, REPORT)

    async def report_text(self) -> str | None:
        """Return the report in Markdown; None if there is none."""
        try:
            return (await self.load(REPORT_TEXT)).decode()
        except FileNotFoundError:
            return None
        except UnicodeError as error:
            raise self._damaged(REPORT_TEXT, error) from error

    async def stored(self, kind: type[T], name: str) -> T | None:
        """Return the data of one of the run's JSON files, as the store's `stored` does."""
        return await self.store.stored(kind, self._path(name))

    async def list(self) -> list[str]:
        """Return the sorted file names of the run's tool outputs, without the responses that these were read from."""
        names = await self.store.list(self.folder)
        return [name for name in names if "__step" in name and not name.endswith(RESPONSES)]

    async def save_text(self, name: str, text: str) -> None:
        """Store a text, such as `report.md`."""
        await self.save(name, text.encode())

    async def save_json(self, name: str, data: object) -> None:
        """Store models or plain data as indented JSON, such as `plan.json`."""
        await self.save(name, json_bytes(data))

    async def load_json(self, name: str) -> Any:
        """Return the plain data of a JSON file.

        Raises:
            FileNotFoundError: there is no such file.
            StoreError: it cannot be read, or is not JSON.
        """
        data = await self.load(name)
        try:
            return from_json(data)  # which, unlike the standard library, rejects lone surrogates
        except ValueError as error:
            raise self._damaged(name, error) from error

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _damaged(self, name: str, error: ValueError) -> StoreError:
        return StoreError(f"{self.path_of(name)} is damaged: {error}.", next_step="restore the file, or run again")


async def note_change(store: ArtifactStore, place: str) -> None:
    """Leave a note that the run at a path is about to begin, to get another manifest, or to be removed."""
    await store.write(note_path(place, now().timestamp()), b"")


def note_path(place: str, at: float) -> str:
    """Return the path of the note that a folder changed at a time, in seconds since the epoch."""
    return f"{CHANGED}/{datetime.fromtimestamp(int(at), UTC):{NOTED}}~{place.replace('/', '~')}"


def json_bytes(data: object, indent: int = 2) -> bytes:
    """Return models or plain data as the JSON that is stored."""
    return (json.dumps(to_jsonable_python(data), indent=indent, ensure_ascii=False) + "\n").encode()
