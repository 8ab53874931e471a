"""What a Prefect API knows of runs, without importing Prefect, which takes longer than all else that a list needs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from fathom.flows.preflight import artifact_root
from fathom.flows.server import ask_api
from fathom.storage.lease import result_key
from fathom.storage.store import ArtifactStore

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

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
    auto_scheduled: bool = False
    created: datetime | None = None
    expected_start_time: datetime | None = None
    start_time: datetime | None = None


def row_of(flow_run: FlowRun) -> FlowRunRow:
    """Return a flow run that Prefect's own client has read."""
    return FlowRunRow.model_validate(flow_run.model_dump(mode="json"))


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
