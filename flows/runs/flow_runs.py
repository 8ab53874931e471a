"""What a Prefect API knows of runs, without importing Prefect, which takes longer than all else that a list needs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from fathom.errors import StoreError
from fathom.flows.preflight import artifact_root
from fathom.flows.server import ask_api
from fathom.models import Ending
from fathom.storage.lease import Lease, is_gone, read_lease, result_key
from fathom.storage.store import ArtifactStore

FLOW = "deep-research"
BATCH = "research-batch"
FLOWS = (FLOW, BATCH)
"""Flows whose runs hold a lease while a process works on them."""
_FIRST_WORD = re.compile(rf"({'|'.join(Ending)})\b")
WAITING = "waiting for you"
ENDING_SECONDS = 30.0
"""In which a process that has given its run up tells Prefect how it ended."""
UNDER_WAY = ("RUNNING", "PENDING", "CANCELLING")


class RunState(BaseModel):
    """A state that Prefect gave a run; unknown fields are left out."""

    timestamp: datetime
    message: str | None = None


class FlowRunRow(BaseModel):
    """A flow run as the API describes it; unknown fields are left out."""

    id: str
    parameters: dict[str, Any] = {}
    state_type: str | None = None
    state_name: str | None = None
    state: RunState | None = None
    infrastructure_pid: str | None = None
    auto_scheduled: bool = False
    created: datetime | None = None
    expected_start_time: datetime | None = None
    start_time: datetime | None = None


async def recent(limit: int) -> list[FlowRunRow]:
    """Return the latest runs of the pipeline, the newest first; `fathom.flows.server.find_api` comes first."""
    query = {
        "flows": {"name": {"any_": [FLOW]}},
        "flow_runs": {"expected_start_time": {"before_": datetime.now(UTC).isoformat()}},  # not those of a schedule
        "sort": "EXPECTED_START_TIME_DESC",
        "limit": limit,
    }
    rows = await asyncio.to_thread(ask_api, "flow_runs/filter", query)
    if not isinstance(rows, list):  # a server that wants certificates or headers, which Prefect's own client knows of
        from prefect.client.orchestration import get_client

        async with get_client() as client:
            rows = (await client.request("POST", "/flow_runs/filter", json=query)).json()
    return [FlowRunRow.model_validate(row) for row in rows]


def place(run_id: str, parameters: Mapping[str, Any]) -> tuple[ArtifactStore, str]:
    """Return the store of a run's results, and the key under which they are stored."""
    root = (parameters.get("settings") or {}).get("artifacts")
    return ArtifactStore(artifact_root(root)), result_key(run_id, parameters.get("run_key"))


async def state_of(run: FlowRunRow) -> str:
    """Return the state to tell a person: `interrupted` where no process works on a run that has not ended."""
    if run.state_type in ("COMPLETED", "FAILED") and (ending := ending_in(run.state.message if run.state else "")):
        return ending.value
    state = (run.state_name or "").lower()
    if run.state_type == "CRASHED":
        return "interrupted"
    waits = run.state_type == "PAUSED"
    state = WAITING if waits else state
    if run.state_type not in (*UNDER_WAY, "PAUSED") or run.state_name == "Suspended":
        return state
    with suppress(StoreError):
        lease = await read_lease(*place(run.id, run.parameters))
        if lease and (waits or has_begun(run.state.timestamp if run.state else None, lease)):
            # Between giving it up and the final state, the process still has to tell Prefect how it ended.
            ends_now = lease.released and lease.age < ENDING_SECONDS and not is_gone(lease.host, lease.pid)
            return state if lease.alive or ends_now else "interrupted"
    host, _, pid = (run.infrastructure_pid or "").rpartition(":")
    return "interrupted" if pid.isdecimal() and is_gone(host, int(pid)) else state


def ending_in(message: str | None) -> Ending | None:
    """Return how a run ended by the message of its final state, whose first word says it; None if it does not."""
    first = _FIRST_WORD.match(message or "")
    return Ending(first[1]) if first else None


def has_begun(since: datetime | None, lease: Lease) -> bool:
    """Whether a lease is that of the present attempt, in its state since a time: one that is starting has none yet."""
    return since is None or since <= datetime.fromisoformat(lease.renewed)
