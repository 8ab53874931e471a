"""A finished run as one zip file, to move it between stores: its folder and its stored results.

    bundle.json      format, run id, run key, and each file with its bytes and SHA-256
    run/...          the files of its folder, as they are, so that it verifies where it arrives
    results/...      its stored results, so that it can be replayed there

A bundle may come from anyone. Nothing is written before all of it has been read and checked; then the run's folder is
claimed with a manifest that hides it, which the run's own manifest replaces last.

Stored results from elsewhere need care: Prefect restores a stored result with the serializer and the class that the
result names. A foreign result could make a replay run anything, so only the form that Fathom writes is accepted.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
import struct
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

from pydantic import ValidationError
from pydantic_core import from_json

from fathom.errors import InvalidInput, NoReport, StoreError
from fathom.models import Model
from fathom.storage.lease import RESULTS, LeaseFile
from fathom.storage.names import folder_names
from fathom.storage.pruning import partial
from fathom.storage.runs import StoredRun, runs
from fathom.storage.store import MANIFEST, PARTIAL, RESULT, RUNS, ArtifactStore, RunFolder, json_bytes

FORMAT = 1
_INDEX = "bundle.json"
_RUN, _RESULTS = "run/", "results/"
_RECORD = re.compile(r"(?!told-)[a-z0-9_]+-[0-9a-f]{24}")  # name of a stored result, not of a recorded event
_NAME = re.compile(r"(run|results)(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}){1,4}")
_MOST_FILES = 50_000
_MOST_BYTES = 4 * 10**9  # bytes of all files
_MOST_OF_FILE = 256 * 10**6  # bytes of one file, which is held in memory
_MOST_EXPANSION = 200  # text expands 3 to 30 times
_SMALL = 10**7  # bytes below which no expansion is suspicious


class BundledFile(Model):
    """A file of a bundle."""

    bytes: int
    sha256: str


class Bundle(Model):
    """`bundle.json`."""

    format: int
    run_id: str
    run_key: str
    files: dict[str, BundledFile]


class Imported(Model):
    """The place of an imported run. `replayable`: its stored results came with it."""

    run_id: str
    query: str
    folder: str
    files: int
    bytes: int
    replayable: bool


async def pack(run: StoredRun, target: BinaryIO) -> Bundle:
    """Write a finished run as a zip file.

    Raises:
        NoReport: the run has not finished.
    """
    store, folder, key = run.store, run.folder, run.run_key
    if not folder or not await store.exists(f"{folder}/{RESULT}"):
        raise NoReport("The run has not finished.", next_step="fathom resume RUN finishes it")
    files: dict[str, BundledFile] = {}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        async for name, path in _files(store, folder, f"{RESULTS}/{key}"):
            data = await store.read(path)
            files[name] = BundledFile(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
            archive.writestr(name, data)
        bundle = Bundle(format=FORMAT, run_id=run.run_id, run_key=key, files=files)
        archive.writestr(_INDEX, json_bytes(bundle))
    return bundle


async def _files(store: ArtifactStore, folder: str, results: str) -> AsyncIterator[tuple[str, str]]:
    """Yield the files of a run by their name in a bundle: no leases, and nothing that was left half-written."""
    for path in await store.sizes(folder):
        if _NAME.fullmatch(name := _RUN + path.removeprefix(f"{folder}/")):
            yield name, path
    for path in await store.sizes(results):
        if _RECORD.fullmatch(name := path.removeprefix(f"{results}/")):
            yield _RESULTS + name, path


async def unpack(store: ArtifactStore, file: Path, check_page: Callable[[bytes], str]) -> Imported:
    """Import the run of a bundle into a store, whole or not at all. `check_page` returns why a page is refused.

    Raises:
        InvalidInput: the file is not a bundle, is damaged or dangerous, or the store has the run.
        RunBusy: a process works on a run with the same run key.
    """
    with _opened(file) as (archive, packed):
        bundle, run = _checked(archive, packed)
        for name in bundle.files:
            if name.lower().endswith(".html") and (why := check_page(_read(archive, name))):
                raise _refused(f"{name} {why}")
        if present := [found for found in await runs(store) if found.run_id == bundle.run_id]:
            raise InvalidInput(
                f"The store has the run {bundle.run_id[:8]}: {store.address(present[0].folder)}.",
                next_step="remove that folder first if the bundle is to replace it, and "
                + store.address(f"{RESULTS}/{bundle.run_key}"),
            )
        lease, _last = await LeaseFile.hold(store, bundle.run_id, bundle.run_key)
        try:
            return await _write(store, archive, bundle, run, lease)
        finally:
            await lease.withdraw()


async def _write(
    store: ArtifactStore, archive: zipfile.ZipFile, bundle: Bundle, run: Mapping[str, Any], lease: LeaseFile
) -> Imported:
    folder = await _claim(store, bundle, str(run["plan_title"]))
    results = f"{RESULTS}/{bundle.run_key}"
    # Results of other runs with the key, which may have got other answers, stay as they are.
    others = [path.removeprefix(f"{results}/") for path in await store.sizes(results)]
    used = not all(re.match(r"lease/|told[/-]", path) for path in others)
    renewed = monotonic()
    for name in sorted(bundle.files):
        if name == _RUN + MANIFEST or (used and name.startswith(_RESULTS)):
            continue
        if monotonic() - renewed > lease.seconds / 4:
            if not await lease.renew():
                raise StoreError("Another process has taken over the run.", next_step="import it again")
            renewed = monotonic()
        data = _data(archive, name, bundle.files[name])
        if name.startswith(_RESULTS):
            await store.write(f"{results}/{name.removeprefix(_RESULTS)}", checked(name, data))
        else:
            await store.write(f"{folder}/{name.removeprefix(_RUN)}", data)
    own = _RUN + MANIFEST
    await RunFolder(store, folder).replace_manifest(_data(archive, own, bundle.files[own]))
    return Imported(
        run_id=bundle.run_id,
        query=str(run.get("query", "")),
        folder=store.address(folder),
        files=len(bundle.files),
        bytes=sum(file.bytes for file in bundle.files.values()),
        replayable=not used and any(name.startswith(_RESULTS) for name in bundle.files),
    )


async def _claim(store: ArtifactStore, bundle: Bundle, plan_title: str) -> str:
    """Claim a folder that belongs to no run, or that an earlier import of this run has left, and empty it."""
    for name in folder_names(plan_title, bundle.run_id):
        folder = f"{RUNS}/{name}"
        if await RunFolder(store, folder).create_manifest(partial(bundle.run_id, bundle.run_key)):
            await store.remove_all([path for path in await store.sizes(folder) if path != f"{folder}/{MANIFEST}"])
            return folder
    raise StoreError(f"The folders for {plan_title!r} belong to other runs.", next_step="choose another --artifacts")


# A damaged index may claim a future version, or have names that are not text and lengths beyond its end.
_NO_ZIP = (OSError, zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, struct.error)


@contextmanager
def _opened(file: Path) -> Iterator[tuple[zipfile.ZipFile, int]]:
    """Open a zip file; also return its size on the disk."""
    try:
        archive, size = zipfile.ZipFile(file), file.stat().st_size
    except _NO_ZIP as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a zip file"
        raise InvalidInput(f"{file} cannot be read: {why}.", next_step="check the path") from error
    with archive:
        yield archive, size


def _checked(archive: zipfile.ZipFile, packed: int) -> tuple[Bundle, dict[str, Any]]:
    """Read all of a bundle, whose file has so many bytes; return its index and the run's manifest."""
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    total = sum(entry.file_size for entry in entries)
    if len(names) > _MOST_FILES or total > _MOST_BYTES or max(total - _SMALL, 0) > _MOST_EXPANSION * packed:
        raise _refused(f"it holds {len(names):,} files of {total:,} bytes, in a file of {packed:,}")
    for entry in entries:
        if entry.filename != _INDEX and not _NAME.fullmatch(entry.filename):
            raise _refused(f"it holds {entry.filename!r}, which is not a file of a run")
        if entry.filename.startswith(_RESULTS) and not _RECORD.fullmatch(entry.filename.removeprefix(_RESULTS)):
            raise _refused(f"it holds {entry.filename!r}, which is not a stored result")
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG) or entry.flag_bits & 1 or entry.file_size > _MOST_OF_FILE:
            raise _refused(f"{entry.filename!r} is a link, encrypted, or too large")
    if len(names) != len(set(names)):
        raise _refused("it holds two files with the same name")
    if _INDEX not in names:
        raise _refused(f"it has no {_INDEX}; fathom export RUN --bundle makes bundles")
    try:
        index = from_json(_read(archive, _INDEX))
        if isinstance(index, dict) and index.get("format") != FORMAT:
            raise _refused(f"its format is {index.get('format')!r}, and this version reads format {FORMAT}")
        bundle = Bundle.model_validate(index)
        if {*bundle.files, _INDEX} != {*names}:
            raise _refused(f"its files are not the ones that {_INDEX} lists")
        for name, file in bundle.files.items():
            data = _data(archive, name, file)
            if name.startswith(_RESULTS):
                checked(name, data)
        run = from_json(_read(archive, _RUN + MANIFEST))
    except (KeyError, ValueError, ValidationError) as error:
        raise _refused(f"it is not in the form of a bundle ({str(error).splitlines()[0]})") from error
    _check_run(bundle, run)
    return bundle, run


def _check_run(bundle: Bundle, run: object) -> None:
    of_run = [bundle.run_id, bundle.run_key]
    if not isinstance(run, dict) or [run.get("run_id"), run.get("run_key")] != of_run or not run.get("plan_title"):
        raise _refused(f"its {MANIFEST} belongs to another run")
    if PARTIAL in run or _RUN + RESULT not in bundle.files:
        raise _refused("its run is incomplete")
    if not re.fullmatch(r"[0-9a-f-]{8,40}", bundle.run_id) or not re.fullmatch(r"[a-z0-9_-]{1,100}", bundle.run_key):
        raise _refused("its run id or run key is invalid")


def _data(archive: zipfile.ZipFile, name: str, file: BundledFile) -> bytes:
    """Return the bytes of a file, checked against the index."""
    data = _read(archive, name)
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise _refused(f"{name} was changed: its SHA-256 differs from the recorded one")
    return data


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except (*_NO_ZIP, RuntimeError) as error:  # the last where it claims to be encrypted
        raise _refused(f"{name} is damaged: {error}") from error
    except Exception as error:  # what zlib, bz2 and lzma raise is not one class
        if type(error).__module__ in ("zlib", "lzma", "_lzma"):
            raise _refused(f"{name} is damaged: {error}") from error
        raise


def _refused(why: str) -> InvalidInput:
    return InvalidInput(f"The bundle is not imported: {why}.", next_step="ask its creator for the bundle again")


_SERIALIZER = {
    "type": "json",
    "jsonlib": "json",
    "object_encoder": "prefect.serializers.prefect_json_object_encoder",
    "object_decoder": "prefect.serializers.prefect_json_object_decoder",
    "dumps_kwargs": {},
    "loads_kwargs": {},
}
_CLASS = re.compile(r"(fathom|tasks)(\.[a-z_]+)+\.[A-Z][A-Za-z]*")
_NAMING = ("__class__", "__exc_type__")


def checked(name: str, data: bytes) -> bytes:
    """Return a stored result, written anew after validation.

    Raises:
        InvalidInput: it is not a stored result, or names classes other than Fathom's models and errors.
    """
    try:
        record = json.loads(data)
        metadata, result = record["metadata"], json.loads(record["result"])
        known = metadata["serializer"] == _SERIALIZER and metadata.get("storage_block_id") is None
        strange = _strange_class(result) if known else "another serializer"
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _strange(name, "something that is not a stored result") from error
    if strange:
        raise _strange(name, strange)
    # Written anew: of two values for one key, every reader now sees the one that was checked.
    return json.dumps({**record, "result": json.dumps(result)}).encode()


def _strange_class(value: Any) -> str | None:
    """Return a class name in a value that is not a class of Fathom."""
    if isinstance(value, dict):
        for key in _NAMING:
            if key in value and not (isinstance(value[key], str) and _CLASS.fullmatch(value[key])):
                return f"{value[key]!r}"
        return next(filter(None, map(_strange_class, value.values())), None)
    if isinstance(value, list):
        return next(filter(None, map(_strange_class, value)), None)
    return None


def _strange(name: str, what: str) -> InvalidInput:
    return InvalidInput(
        f"The bundle is not imported: {name} holds {what}.", next_step="import only what fathom export --bundle made"
    )
