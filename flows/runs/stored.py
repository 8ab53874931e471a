"""Finding and reading stored runs without a server."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from fathom.changes.model import CHANGES, Changes
from fathom.config.environment import Environment, artifact_root
from fathom.errors import FathomError, InvalidInput, NoReport, RunNotFound, StoreError
from fathom.evidence.provenance import PROVENANCE, Provenance, read
from fathom.flows.runs.index import RunIndex
from fathom.flows.runs.states import place, recent, state_of
from fathom.flows.server import find_api
from fathom.models import AuditHead, Model, ParentRun, Plan, Report, ReportRating, RunResult, RunState
from fathom.storage.atomic import side_by_side
from fathom.storage.pruning import PRUNED, PrunedEvidence
from fathom.storage.runs import StoredRun, other_stores
from fathom.storage.steering import Ratings
from fathom.storage.store import RUNS, ArtifactStore, RunFolder
from fathom.telemetry.audit_events import Break, ChainedEvent, check, events_in
from fathom.telemetry.audit_log import AUDIT_FILE

ID_DIGITS = 4  # anything shorter is a name, not the prefix of an id
MOST_NAMED = 10  # runs of one plan title that an error lists
_STORES_NAMED = 3  # that an error lists

T = TypeVar("T")
_ID = re.compile(r"[0-9a-f][0-9a-f-]{3,}", re.IGNORECASE)


class RunDetails(Model):
    """A stored run as `fathom show` prints it. `result` is None until the run has finished."""

    run_id: str
    query: str
    started: str
    artifacts: str
    plan: Plan | None
    result: RunResult | None
    report: str | None  # its Markdown
    parent: ParentRun | None = None  # of a follow-up
    ratings: list[ReportRating] = []  # of its readers, the oldest first


class Audit(Model):
    """A run's audit log and whether it is intact. `head`: its end according to the run's result."""

    run_id: str
    file: str
    whole: bool
    broken: Break | None
    head: AuditHead | None
    events: list[ChainedEvent]


def read_run(name: str, artifacts: str | None, reader: Callable[[StoredRun], Awaitable[T]]) -> T:
    """Find a run by its id, folder or plan title, and return the result of `reader` for it.

    Raises:
        RunNotFound: there is none.
        InvalidInput: there are several.
    """

    async def found() -> T:
        try:
            run = await find_here(name, artifacts, on_stderr)
        except RunNotFound as error:
            await _explain(error, *locate(name, artifact_root(artifacts)))
            raise
        return await reader(run)

    return asyncio.run(found())


def on_stderr(line: str) -> None:
    """Show the user of a command a line beside its output."""
    print(f"fathom: {line}", file=sys.stderr)  # noqa: T201 - a command waits meanwhile


async def _explain(missing: RunNotFound, root: str, name: str) -> None:
    """Say in the error for a run that the store lacks what the Prefect server knows of it, if it knows anything."""
    try:
        known = [run for run in await recent() if is_prefix(name, run.id)] if find_api() else []
    except FathomError:  # it is only a hint: stored runs are read without the server
        return
    for run in known:
        if (other := place(run.id, run.parameters)[0].address()) != root:
            missing.next_step = f"the Prefect server knows it; its files are there: --artifacts {other}"
            return
    if known:
        state, short = await state_of(known[0]), known[0].id[:8]
        missing.message = f"{root} has no files of the run {short}, which is {state.value.replace('_', ' ')}."
        if state is RunState.interrupted:
            missing.next_step = f"fathom resume {short} starts it again"


def matching(name: str, found: Iterable[StoredRun]) -> list[StoredRun]:
    """Return the runs whose id (or its beginning), folder, plan title or run key is the given name."""
    known = list(found) if name else []
    exact = [run for run in known if name in (run.folder, run.name, run.run_id, run.run_key, run.plan_title)]
    # The key of a run that was restarted from its store is its first id.
    return exact or [run for run in known if is_prefix(name, run.run_id) or is_prefix(name, run.run_key)]


def is_prefix(name: str, run_id: str) -> bool:
    """Whether a name is the prefix of a run's id, with or without hyphens."""
    plain = name.replace("-", "").lower()
    return len(plain) >= ID_DIGITS and run_id.replace("-", "").startswith(plain)


def locate(name: str, root: str) -> tuple[str, str]:
    """Return the root and the name to look for; the path of a run's folder contains its root."""
    address = name if "://" in name else str(Path(name).resolve())
    own_root, marker, folder = address.rstrip("/").rpartition("/research_artifacts/")
    return (own_root, folder) if marker and "/" in name else (root, name)


def reference(result: RunResult, root: str) -> str:
    """Return a reference to a run that `fathom show` accepts: a prefix of its id, or its folder if outside the root."""
    return result.run_id[:8] if result.artifacts.startswith(f"{root}/") else result.artifacts


async def find_here(name: str, artifacts: str | None, say: Callable[[str], object] = lambda line: None) -> StoredRun:
    """Return the run that a name means on this machine.

    That is a run of the given store; if none is given, of the present store or, by its id, of another that the user has
    used.

    Raises:
        RunNotFound: there is none.
        InvalidInput: there are several.
    """
    root, folder = locate(name, artifact_root(artifacts))
    try:
        return await find(ArtifactStore(root), folder, say)
    except RunNotFound as missing:
        found, looked = await find_elsewhere(folder, root) if not artifacts else ([], [])
        if len(found) > 1:
            raise several(name, [run.run_id for run in found]) from None
        if found:
            say(f"the run is stored in {found[0].store.address()}")
            return found[0]
        missing.message += nor_in(looked)
        raise


async def find_elsewhere(name: str, root: str) -> tuple[list[StoredRun], list[str]]:
    """Return the runs with an id in the stores other than `root` that the user has used, and the stores looked through.

    A run that several stores have is returned once. Stores on other machines are asked only if none here has it.
    """
    found: dict[str, StoredRun] = {}
    looked: list[str] = []
    for address in other_stores(root, Environment.read()) if _ID.fullmatch(name) else ():
        if found and "://" in address:
            continue
        try:
            own = await find_all(ArtifactStore(address), name)
        except FathomError as error:  # another store may have it
            looked.append(f"{address} (which cannot be read: {error.message.rstrip('.')})")
            continue
        looked.append(address)
        for run in own:
            if is_prefix(name, run.run_id) or is_prefix(name, run.run_key):
                found.setdefault(run.run_id, run)
    return list(found.values()), looked


def nor_in(looked: Sequence[str]) -> str:
    """Return the sentence that says where else a run was looked for; empty if nowhere."""
    if len(looked) > _STORES_NAMED:
        return f" Nor is it in the {len(looked)} other stores that you have used."
    return f" Nor is it in the other stores that you have used: {', '.join(looked)}." if looked else ""


def several(name: str, ids: Sequence[str]) -> InvalidInput:
    """Return the error for a name that may mean several runs."""
    return InvalidInput(f"{name!r} matches {len(ids)} runs.", next_step=f"choose one by its id: {', '.join(ids[:5])}")


async def find(store: ArtifactStore, name: str, say: Callable[[str], object] = lambda line: None) -> StoredRun:
    """Return the run with an id, folder, plan title or run key.

    Raises:
        RunNotFound: there is none.
        InvalidInput: there are several.
    """
    found = await find_all(store, name, say)
    if not found:
        short = f"; an id needs at least {ID_DIGITS} digits" if len(name) < ID_DIGITS else ""
        raise RunNotFound(f"No run {name!r} in {store.address()}.", next_step=f"fathom runs lists them{short}")
    if len(found) > 1:
        raise several(name, [run.run_id for run in found])
    return found[0]


async def find_all(
    store: ArtifactStore, name: str, say: Callable[[str], object] = lambda line: None
) -> list[StoredRun]:
    """Return the runs that a name may mean; names unknown to the index are looked up in the store itself."""
    index = RunIndex(store, say)
    for listed in (False, True):
        named = matching(name.strip(), await index.read(listed=listed))
        if found := [now for run in named[:MOST_NAMED] if (now := await index.now(run))]:
            return found
    return []


async def report_of(result: RunResult) -> Report | None:
    """Return the report of a run that has ended, as data; None if it has none."""
    return await _folder(result).report() if result.report else None


async def changes_of(result: RunResult) -> Changes | None:
    """Return what changed since the run before, of a watch's run that has ended; None if it was not compared.

    Raises:
        StoreError: the file is damaged.
    """
    return await _folder(result).stored(Changes, CHANGES) if result.changes else None


async def lacks_earlier(result: RunResult) -> bool:
    """Whether a run that has ended is the first of its watch that could be compared with another."""
    run = None if result.changes else await _folder(result).manifest()
    return bool(run and run.watch)


def _folder(result: RunResult) -> RunFolder:
    root, folder = locate(result.artifacts, "")
    return RunFolder(ArtifactStore(root), f"{RUNS}/{folder}")


async def load(run: StoredRun) -> RunDetails:
    """Return the details of a run from the store."""
    files = run.files
    manifest = await files.manifest() if run.parent else None
    return RunDetails(
        run_id=run.run_id,
        query=run.query,
        started=run.started,
        artifacts=files.url,
        plan=await files.plan(),
        result=await files.result(),
        report=await files.report_text(),
        parent=manifest.parent if manifest else None,
        ratings=await Ratings(run.store).of(run.run_id),
    )


async def files_of(run: StoredRun) -> dict[str, bytes]:
    """Return the files that a run's provenance lists, and every raw output.

    Raises:
        NoReport: the run has no provenance, which is written with the report, or its evidence was removed.
    """
    folder = run.files
    await check_evidence(folder)
    files: dict[str, bytes] = {}

    async def read_file(name: str) -> None:
        with suppress(FileNotFoundError):  # verification reports it
            files[name] = await folder.load(name)

    await read_file(PROVENANCE)
    if PROVENANCE not in files:
        raise await no_report(folder)
    names = {*await folder.list(), *recorded(files).files}
    await side_by_side(sorted(names), read_file)
    return files


async def check_evidence(folder: RunFolder) -> None:
    """Check that a run's evidence was not removed.

    Raises:
        NoReport: `fathom prune --keep-reports` has removed it.
    """
    if pruned := await folder.stored(PrunedEvidence, PRUNED):
        raise NoReport(
            f"The evidence of the run was removed on {pruned.removed[:10]} by `fathom prune --keep-reports`: there is "
            "nothing left to check or repeat.",
            next_step="`fathom show` and `fathom export` still work",
        )


async def no_report(folder: RunFolder) -> FathomError:
    """Return the error for a run without a report, or without all of its files, with the next step."""
    result = await folder.result()
    if result is None:
        return NoReport("The run has not finished: it has no report yet.", next_step="fathom resume RUN finishes it")
    if result.report is None:
        ending = result.status.value.replace("_", " ")
        return NoReport(
            f"The run ended without a report ({ending}), so there is nothing to check or export.",
            next_step=f"fathom show {result.run_id[:8]} says what was searched and what comes closest",
        )
    return StoreError("Files of the run are missing: it was stopped while it saved them, or they were removed.")


def recorded(files: Mapping[str, bytes]) -> Provenance:
    """Return the provenance among the files of a run."""
    return read(files[PROVENANCE])[0]


async def read_audit(run: StoredRun) -> Audit:
    """Read and check the audit log of a run."""
    folder = run.files
    try:
        result = await folder.result()
    except StoreError:
        result = None
    head = result.audit_head if result else None
    events: list[ChainedEvent] = []
    try:
        data = await folder.load(AUDIT_FILE)
    except FileNotFoundError:
        broken: Break | None = Break(line=1, problem=f"there is no {AUDIT_FILE}")
    else:
        broken, events = check(data, head), events_in(data, ChainedEvent)
    file = folder.path_of(AUDIT_FILE)
    return Audit(run_id=run.run_id, file=file, whole=broken is None, broken=broken, head=head, events=events)
