"""The state of a run, judged in this one place from Prefect's record and from the store."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from fathom.config.environment import artifact_root
from fathom.errors import StoreError
from fathom.flows.server import MOST_AT_ONCE, ask_api
from fathom.models import Ending, RunResult, RunState
from fathom.storage.lease import Lease, is_gone, read_lease, result_key
from fathom.storage.runs import StoredRun
from fathom.storage.store import ArtifactStore

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

ENDING_SECONDS = 30.0
"""Seconds in which a process that has given its run up reports the ending to Prefect."""
UNDER_WAY = ("RUNNING", "PENDING", "CANCELLING")
_FIRST_WORD = re.compile(rf"({'|'.join(Ending)})\b")
_STATES = {
    "SCHEDULED": RunState.queued,
    "PENDING": RunState.queued,
    "RUNNING": RunState.running,
    "PAUSED": RunState.waiting,
    "COMPLETED": RunState.complete,
    "FAILED": RunState.failed,
    "CRASHED": RunState.interrupted,
    "CANCELLING": RunState.cancelled,
    "CANCELLED": RunState.cancelled,
}


async def state_of(
    flow_run: FlowRunRow | None, run: StoredRun | None = None, result: RunResult | None = None
) -> RunState:
    """Return the state of a run: `interrupted` if it has not ended and no process works on it.

    Prefect knows whether it has ended, and its result how. A run that Prefect does not know is judged by its lease.
    """
    if flow_run is None or flow_run.state_type is None:
        return RunState(result.status.value) if result else await _by_lease(run)
    state = _STATES.get(flow_run.state_type, RunState.running)
    if flow_run.state_type in ("COMPLETED", "FAILED"):
        ending = ending_in(flow_run.state.message if flow_run.state else "")
        if ending is None and result and state is RunState.complete:
            ending = result.status
        return RunState(ending.value) if ending else state
    taken = flow_run.state_type in ("RUNNING", "PENDING", "PAUSED") or (
        flow_run.state_type == "SCHEDULED" and flow_run.deployment_id is None  # no worker takes it
    )
    taken = taken and flow_run.state_name != "Suspended"
    return RunState.interrupted if taken and await _is_gone(flow_run) else state


async def _by_lease(run: StoredRun | None) -> RunState:
    lease = await read_lease(run.store, run.run_key) if run else None
    if lease and lease.alive:
        return RunState.running
    return RunState.waiting if lease and lease.released and lease.waiting else RunState.interrupted


async def _is_gone(flow_run: FlowRunRow) -> bool:
    """Whether no process works any more on a run that a process has taken."""
    waits = flow_run.state_type == "PAUSED"
    with suppress(StoreError):
        lease = await read_lease(*place(flow_run.id, flow_run.parameters))
        if lease and (waits or has_begun(flow_run.state.timestamp if flow_run.state else None, lease)):
            # Between giving it up and the final state, the process still has to tell Prefect how it ended.
            ends_now = lease.released and lease.age < ENDING_SECONDS and not is_gone(lease.host, lease.pid)
            return not (lease.alive or ends_now)
    if flow_run.infrastructure_pid is None and flow_run.deployment_id is None:
        # A process records itself as soon as it has created a run.
        return flow_run.state_type in ("PENDING", "SCHEDULED")
    host, _, pid = (flow_run.infrastructure_pid or "").rpartition(":")
    return pid.isdecimal() and is_gone(host, int(pid))


def ending_in(message: str | None) -> Ending | None:
    """Return the ending of a run from the first word of its final state's message; None if that is not an ending."""
    first = _FIRST_WORD.match(message or "")
    return Ending(first[1]) if first else None


def has_begun(since: datetime | None, lease: Lease) -> bool:
    """Whether a lease belongs to the present attempt, in its state since a time: a starting one has no lease yet."""
    return since is None or since <= datetime.fromisoformat(lease.renewed)


FLOW = "deep-research"
BATCH = "research-batch"
FLOWS = (FLOW, BATCH)
"""Flows whose runs hold a lease while a process works on them."""


class PrefectState(BaseModel):
    """A state that Prefect gave a run; unknown fields are left out."""

    timestamp: datetime
    message: str | None = None


class FlowRunRow(BaseModel):
    """A flow run as the API describes it; unknown fields are left out."""

    id: str
    parameters: dict[str, Any] = {}
    state_type: str | None = None
    state_name: str | None = None
    state: PrefectState | None = None
    infrastructure_pid: str | None = None
    deployment_id: str | None = None
    auto_scheduled: bool = False
    created: datetime | None = None
    expected_start_time: datetime | None = None
    start_time: datetime | None = None


def row_of(flow_run: FlowRun) -> FlowRunRow:
    """Return a flow run that Prefect's own client has read."""
    return FlowRunRow.model_validate(flow_run.model_dump(mode="json"))


async def recent(limit: int = MOST_AT_ONCE) -> list[FlowRunRow]:
    """Return the latest runs of the pipeline, the newest first, no more than Prefect returns at once.

    `fathom.flows.server.find_api` comes first.
    """
    query = {
        "flows": {"name": {"any_": [FLOW]}},
        "flow_runs": {"expected_start_time": {"before_": datetime.now(UTC).isoformat()}},  # not a schedule's
        "sort": "EXPECTED_START_TIME_DESC",
        "limit": min(limit, MOST_AT_ONCE),
    }
    rows = await asyncio.to_thread(ask_api, "flow_runs/filter", query)
    if not isinstance(rows, list):  # a server that wants certificates or headers, which Prefect's own client knows of
        from fathom.tasks.clients import prefect_client

        async with prefect_client() as client:
            rows = (await client.request("POST", "/flow_runs/filter", json=query)).json()
    return [FlowRunRow.model_validate(row) for row in rows]


def place(run_id: str, parameters: Mapping[str, Any]) -> tuple[ArtifactStore, str]:
    """Return the store of a run's results, and the key under which they are stored."""
    root = (parameters.get("settings") or {}).get("artifacts")
    return ArtifactStore(artifact_root(root)), result_key(run_id, parameters.get("run_key"))
