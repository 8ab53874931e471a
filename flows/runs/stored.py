"""Stored runs: found and read without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from fathom.errors import FathomError, InvalidInput, NoReport, RunNotFound, StoreError
from fathom.evidence.provenance import PROVENANCE, Provenance, read
from fathom.flows.preflight import artifact_root
from fathom.flows.runs.flow_runs import place, recent
from fathom.flows.server import find_api
from fathom.models import AuditHead, Model, ParentRun, Plan, RunResult
from fathom.storage.atomic import READERS
from fathom.storage.lease import RESULTS, read_lease
from fathom.storage.pruning import PRUNED
from fathom.storage.store import ArtifactStore, RunFolder, runs
from fathom.telemetry.audit_events import Break, ChainedEvent, check, events_in
from fathom.telemetry.audit_log import AUDIT_FILE

ID_DIGITS = 4  # anything shorter is a name, not the beginning of an id
LATEST = 200  # runs that `fathom runs` may list

T = TypeVar("T")


class StoredRun(Model):
    """What the artifact store has of a run. `result` is None until the run has finished."""

    run_id: str
    query: str
    started: str
    artifacts: str
    plan: Plan | None
    result: RunResult | None
    report: str | None  # its Markdown
    parent: ParentRun | None = None  # of a follow-up


class Audit(Model):
    """A run's audit log and whether it is whole. `head`: its end as the run's result has it."""

    run_id: str
    file: str
    whole: bool
    broken: Break | None
    head: AuditHead | None
    events: list[ChainedEvent]


def read_run(name: str, artifacts: str | None, reader: Callable[[ArtifactStore, dict[str, Any]], Awaitable[T]]) -> T:
    """Find a run by its id, folder or plan title, and return what a reader of its store and manifest returns.

    Raises:
        RunNotFound: there is none.
        InvalidInput: there are several.
    """

    async def found() -> T:
        root, folder = locate(name, artifact_root(artifacts))
        store = ArtifactStore(root)
        try:
            manifest = await find(store, folder)
        except RunNotFound as error:
            if elsewhere := await _elsewhere(folder, root):
                error.next_step = f"the Prefect server knows it; its files are there: --artifacts {elsewhere}"
            raise
        return await reader(store, manifest)

    return asyncio.run(found())


async def _elsewhere(name: str, root: str) -> str:
    """Return the root of another store, in which the Prefect server says that a run lies; nothing if it does not."""
    try:
        if not find_api():
            return ""
        latest = await recent(LATEST)
        roots = [place(run.id, run.parameters)[0].address() for run in latest if is_prefix(name, run.id)]
    except FathomError:  # it is only a hint: stored runs are read without the server
        return ""
    return next((found for found in roots if found != root), "")


def matching(name: str, manifests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the manifests whose id (or its beginning), folder, plan title or run key is the given name."""
    exact = [found for found in manifests if name in _names(found)]
    ids = ("run_id", "run_key")  # the key of a run that was restarted from its store is its first id
    return exact or [found for found in manifests if any(is_prefix(name, str(found.get(key, ""))) for key in ids)]


def is_prefix(name: str, run_id: str) -> bool:
    """Whether a name is the beginning of a run's id, with or without hyphens."""
    plain = name.replace("-", "").lower()
    return len(plain) >= ID_DIGITS and run_id.replace("-", "").startswith(plain)


def locate(name: str, root: str) -> tuple[str, str]:
    """Return the root and the name to look for; the path of a run's folder contains its root."""
    address = name if "://" in name else str(Path(name).resolve())
    own_root, marker, folder = address.rstrip("/").rpartition("/research_artifacts/")
    return (own_root, folder) if marker and "/" in name else (root, name)


def reference(result: RunResult, root: str) -> str:
    """Return what `fathom show` accepts for a run: the beginning of its id, or its folder if outside the root."""
    return result.run_id[:8] if result.artifacts.startswith(f"{root}/") else result.artifacts


async def known(store: ArtifactStore) -> list[dict[str, Any]]:
    """Return the manifest of every run in a store; of a run without a folder, what its lease says."""
    found = await runs(store)
    keys = {str(manifest.get("run_key")) for manifest in found}
    for key in await store.list(RESULTS):
        if key in keys or not (lease := await read_lease(store, key)) or lease.held:
            continue
        if query := str(lease.parameters.get("query", "")):  # else it is a batch's
            of_lease = lease.model_dump(include={"run_id", "layout", "started"})
            found.append({**of_lease, "run_key": key, "query": query, "folder": ""})
    return found


async def find(store: ArtifactStore, name: str) -> dict[str, Any]:
    """Return the manifest of a run, found by its id, folder, plan title or run key.

    Raises:
        RunNotFound: there is none.
        InvalidInput: there are several.
    """
    found = matching(name.strip(), await known(store))
    if not found:
        raise RunNotFound(f"No run {name!r} in {store.address()}.", next_step="fathom runs lists them")
    if len(found) > 1:
        ids = ", ".join(str(run.get("run_id", "")) for run in found)
        raise InvalidInput(f"{name!r} matches {len(found)} runs.", next_step=f"choose one by its id: {ids}")
    return found[0]


async def load(store: ArtifactStore, manifest: dict[str, Any]) -> StoredRun:
    """Return what the store has of a run."""
    folder = folder_of(store, manifest)
    plan, result = await read_json(folder, "plan.json"), await read_json(folder, "result.json")
    try:
        return StoredRun(
            **{name: manifest.get(name, "") for name in ("run_id", "query", "started")},
            artifacts=folder.url,
            plan=plan and Plan.model_validate(plan),
            result=_moved(RunResult.model_validate(result), folder) if result else None,
            report=await read_report(store, folder.url),
            parent=manifest.get("parent"),
        )
    except ValidationError as error:
        raise StoreError(f"{folder.url} is not a run of this version: {error.errors()[0]['msg']}.") from None


def _moved(result: RunResult, folder: RunFolder) -> RunResult:
    """Return a result with the places where its files are now."""
    report = folder.path_of("report.md") if result.report else None
    return result.model_copy(update={"artifacts": folder.url, "report": report})


async def read_report(store: ArtifactStore, artifacts: str) -> str | None:
    """Return the report in a run's folder (`RunResult.artifacts`); None if there is none."""
    folder = artifacts.removeprefix(store.address()).strip("/")
    try:
        return (await store.read(f"{folder}/report.md")).decode()
    except FileNotFoundError:
        return None
    except UnicodeError as error:
        raise StoreError(f"{artifacts}/report.md is damaged: {error}.", next_step="restore it, or run again") from error


async def files_of(store: ArtifactStore, manifest: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files that a run's provenance lists, and every raw output.

    Raises:
        NoReport: the run has no provenance, which is written with the report, or its evidence was removed.
    """
    folder = folder_of(store, manifest)
    await check_evidence(folder)
    limit = asyncio.Semaphore(READERS)
    files: dict[str, bytes] = {}

    async def read_file(name: str) -> None:
        async with limit:
            with suppress(FileNotFoundError):  # verification reports it
                files[name] = await folder.load(name)

    await read_file(PROVENANCE)
    if PROVENANCE not in files:
        raise await no_report(folder)
    names = {*await folder.list(), *recorded(files).files}
    await asyncio.gather(*map(read_file, sorted(names)))
    return files


async def check_evidence(folder: RunFolder) -> None:
    """Check that a run's evidence was not removed.

    Raises:
        NoReport: `fathom prune --keep-reports` has removed it.
    """
    pruned = await read_json(folder, PRUNED)
    if pruned is not None:
        when = str(pruned.get("removed"))[:10] if isinstance(pruned, dict) else "an unknown day"
        raise NoReport(
            f"The evidence of the run was removed on {when} by `fathom prune --keep-reports`: there is nothing left "
            "to check or repeat.",
            next_step="`fathom show` and `fathom export` still work",
        )


async def no_report(folder: RunFolder) -> FathomError:
    """Return why a run has no report, or not all of its files, and what to do about it."""
    result = await read_json(folder, "result.json")
    if not isinstance(result, dict):
        return NoReport("The run has not finished: it has no report yet.", next_step="fathom resume RUN finishes it")
    if result.get("report") is None:
        ending, run_id = str(result.get("status")).replace("_", " "), str(result.get("run_id", "RUN"))
        return NoReport(
            f"The run ended without a report ({ending}), so there is nothing to check or export.",
            next_step=f"fathom show {run_id[:8]} says what was searched and what comes closest",
        )
    return StoreError("Files of the run are missing: it was stopped while it saved them, or they were removed.")


def recorded(files: Mapping[str, bytes]) -> Provenance:
    """Return the provenance among the files of a run."""
    return read(files[PROVENANCE])[0]


async def read_audit(store: ArtifactStore, manifest: Mapping[str, Any]) -> Audit:
    """Read and check the audit log of a run."""
    folder = folder_of(store, manifest)
    try:
        head = AuditHead.model_validate((await read_json(folder, "result.json"))["audit_head"])
    except (KeyError, TypeError, ValidationError):  # the run has not finished
        head = None
    events: list[ChainedEvent] = []
    try:
        data = await folder.load(AUDIT_FILE)
    except FileNotFoundError:
        broken: Break | None = Break(line=1, problem=f"there is no {AUDIT_FILE}")
    else:
        broken, events = check(data, head), events_in(data, ChainedEvent)
    run_id, file = str(manifest.get("run_id", "")), folder.path_of(AUDIT_FILE)
    return Audit(run_id=run_id, file=file, whole=broken is None, broken=broken, head=head, events=events)


def folder_of(store: ArtifactStore, manifest: Mapping[str, Any]) -> RunFolder:
    """Return where a run's files are; before its plan has a title, only its results are stored."""
    return RunFolder(store, str(manifest["folder"] or f"{RESULTS}/{manifest['run_key']}"))


async def read_json(folder: RunFolder, name: str) -> Any:
    """Return the data of one of a run's files; None if it does not exist yet."""
    try:
        return await folder.load_json(name)
    except FileNotFoundError:
        return None


def _names(manifest: dict[str, Any]) -> set[str]:
    folder = str(manifest["folder"])
    keys = ("run_id", "run_key", "plan_title")
    return {folder, folder.rpartition("/")[2], *(str(manifest.get(key) or "") for key in keys)} - {""}
