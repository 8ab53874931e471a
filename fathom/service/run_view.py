"""A run as the API shows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import PurePath
from typing import Any, TypeVar

from prefect.client.schemas.objects import FlowRun, StateType
from prefect.utilities.urls import url_for
from pydantic import BaseModel

from fathom.client.shapes import Links, Run, RunSummary
from fathom.flows.execution.deploying import living
from fathom.flows.preflight import CheckedRequest
from fathom.flows.runs.answering import ASKED, key_of, read_input
from fathom.flows.runs.finding import KnownRun
from fathom.flows.runs.states import row_of, state_of
from fathom.models import RunManifest, RunResult, RunState
from fathom.service.options import is_own
from fathom.service.workers import waiting_in
from fathom.storage.ownership import Ownership
from fathom.storage.store import ArtifactStore
from fathom.tasks.clients import prefect_client
from fathom.telemetry.progress import read_live
from fathom.text.plain import counted

API = "/api/v1"
_ModelT = TypeVar("_ModelT", bound=BaseModel)
Hide = Callable[[bytes], bytes]
"""What takes paths of the server out of a text."""


def summary_of(found: KnownRun, ownership: Ownership, state: RunState, result: RunResult | None) -> RunSummary:
    """Return what lists and runs both say of a run."""
    return RunSummary(
        id=found.run_id,
        question=found.stored.query,
        state=state,
        answered=result.answered if result else None,
        created=found.created,
        ended=found.ended,
        owner=ownership.owner,
        shared=ownership.shared,
        title=ownership.title,
        parent=found.stored.parent or None,
        watch=found.stored.watch_name or None,
        cost_usd=result.metrics.cost_usd if result else None,
    )


async def read_run(store: ArtifactStore, found: KnownRun, ownership: Ownership, *, with_paths: bool) -> Run:
    """Return all that is known of a run, without paths of the server unless they are wanted.

    Raises:
        StoreError: its files cannot be read.
    """
    flow_run = found.flow_run
    files, stored = found.folder, found.stored
    plan, result, manifest = (
        (await files.plan(), await files.result(), await files.manifest()) if files else (None, None, None)
    )
    asked, complaint = None, ""
    if flow_run and (key := key_of(flow_run.state)):
        async with prefect_client() as client:
            kept = await read_input(client, flow_run.id, f"{key}{ASKED}")
        asked, complaint = (kept["asked"], kept["complaint"]) if kept else (None, "")
    state = await state_of(row_of(flow_run) if flow_run else None, stored, result)
    known = None if result else await read_live(store, found.stored.run_key)
    live = known if state in (RunState.running, RunState.waiting) else None
    given = flow_run.parameters if flow_run else {"settings": manifest.settings if manifest else {}}
    base = f"{API}/runs/{found.run_id}"
    run = Run.model_validate(
        {
            **dict(summary_of(found, ownership, state, result)),
            "settings": settings_shown(given),
            "understood": manifest.understood if manifest else "",
            "stage": known.stage if known and not state.ended else None,
            "phase": await _queued(flow_run) if state is RunState.queued else live.phase if live else "",
            "now": live.now if live else [],
            "drafts": live.drafts if live else [],
            "spent": known.spent if known else result.metrics.account if result else None,
            "caps": known.caps if known else _caps(manifest),
            "plan": plan,
            "asked": asked,
            "complaint": complaint,
            "result": linked(result, base) if result else None,
            "links": Links(
                run=base,
                events=f"{base}/events",
                page=f"/runs/{found.run_id}",
                report=f"{base}/report" if result and result.report else None,
                prefect=(url_for("flow-run", obj_id=flow_run.id) or None) if flow_run else None,
            ),
        }
    )
    return run if with_paths else plain(run, hiding(found, manifest, store.address()))


def notices_of(*searched: str) -> list[str]:
    """Return what somebody is told who asks for runs if some have neither documents nor a web search."""
    how = (
        "name an uploaded corpus in `corpora` or, as an administrator, files of the server in `docs`; for the web, an "
        "administrator sets a search key"
    )
    return [f"Only {what}, is searched. For your own files, {how}." for what in dict.fromkeys(searched) if what]


def told(run: Run, request: CheckedRequest) -> Run:
    """Return a run that was just started, with what whoever asked should know."""
    return run.model_copy(update={"notices": notices_of(request.searched)})


def linked(result: RunResult, base: str) -> RunResult:
    """Return a result with addresses of the API, below the run's `base`, in place of where the server stores it."""
    report = f"{base}/report" if result.report else None
    return result.model_copy(update={"artifacts": f"{base}/artifacts", "report": report})


def settings_shown(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that were given, without where on the server the store and the documents are."""
    settings = json.loads(json.dumps(given.get("settings") or {}))
    docs = {"docs": [PurePath(path).name for path in settings["docs"]]} if settings.get("docs") else {}
    return {**{name: value for name, value in settings.items() if name != "artifacts"}, **docs}


_QUOTES, _ENDS = ('"', "'"), ('"', "'", "/", '\\"')


def hidden(data: bytes, root: str, settings: Mapping[str, Any]) -> bytes:
    """Return a text without where on the server the store is; of other paths in settings only names stay."""
    for store in (root, settings.get("artifacts")):
        for text in (json.dumps(store, ensure_ascii=False)[1:-1], store) if isinstance(store, str) else ():
            data = data.replace(f"{text}/".encode(), b"").replace(text.encode(), b"")
    for path in map(PurePath, _texts({name: value for name, value in settings.items() if name != "artifacts"})):
        if path.is_absolute() and path.name:
            whole = json.dumps(str(path), ensure_ascii=False)[1:-1]
            for quote, end in product(_QUOTES, _ENDS):
                data = data.replace(f"{quote}{whole}{end}".encode(), f"{quote}{path.name}{end}".encode())
    return data


def plain(told: _ModelT, hide: Hide | None) -> _ModelT:
    """Return what somebody is told, its texts without what `hide` takes out, if there is anything to hide."""
    if hide is None:
        return told
    kept = hide(data := told.model_dump_json().encode())
    return told if kept == data else type(told).model_validate_json(kept)


def hiding(found: KnownRun, manifest: RunManifest | None, root: str) -> Hide:
    """Return what makes `hidden` texts of a run whose store is at `root`."""
    given = found.flow_run.parameters.get("settings") if found.flow_run else None
    return partial(hidden, root=root, settings=manifest.settings if manifest else given or {})


async def hiding_of(found: KnownRun, root: str) -> Hide:
    """Return the same for a run whose manifest is not read yet."""
    return hiding(found, await found.folder.manifest() if found.folder else None, root)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, dict):
        yield from _texts([*value.values()])


def _caps(manifest: RunManifest | None) -> dict[str, float]:
    """Return the budget of a run that has a manifest."""
    budget = manifest.settings.get("budget") if manifest else None
    caps = budget if isinstance(budget, dict) else {}
    return {name: cap for name, cap in caps.items() if name.startswith("max_") and cap is not None}


async def _queued(flow_run: FlowRun | None) -> str:
    """Say what a run waits for: its turn, or somebody who works at all."""
    if flow_run is None or not flow_run.work_pool_name or flow_run.state_type is not StateType.SCHEDULED:
        return "is about to begin"
    pool, due = flow_run.work_pool_name, flow_run.expected_start_time
    async with prefect_client() as client:
        if not await living(client, pool):
            return "waits for a worker to start" if is_own(pool) else f"waits for a worker of the pool {pool}"
        before = await waiting_in(client, pool, due)
    return f"waits for its turn; {counted(before, 'run')} before it" if before else "waits for its turn; it is the next"
