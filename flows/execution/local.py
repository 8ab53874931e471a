"""Runs in this process, and Prefect's record of any run.

Imports Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from prefect import Flow
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.context import AsyncClientContext, SyncClientContext
from prefect.exceptions import Abort
from prefect.flow_engine import run_flow
from prefect.states import Pending
from prefect.utilities.urls import url_for

from fathom.config.settings import ResearchSettings
from fathom.errors import FathomError, ServerLost
from fathom.flows.deep_research import deep_research
from fathom.flows.runs.endings import ending_of, result_in
from fathom.flows.runs.states import place
from fathom.models import RunResult
from fathom.storage.store import RunFolder
from fathom.tasks.clients import prefect_client
from fathom.tasks.durable import recorded_folders


async def run(query: str, settings: ResearchSettings, run_key: str | None = None) -> RunResult:
    """Research a question in this process and return the run's result.

    Raises:
        FathomError: the run failed; it can be resumed.
    """
    async with connected():
        return await execute(await create(query, settings, run_key))


@asynccontextmanager
async def connected() -> AsyncIterator[None]:
    """Keep one client of the Prefect server of each kind inside the block; a new one costs as much as five task runs.

    The engine makes a blocking one for each place of results that it looks up, twice at the start of a run.
    """
    async with AsyncClientContext.get_or_create():
        with SyncClientContext.get_or_create():
            yield


async def create(
    query: str, settings: ResearchSettings, run_key: str | None = None, watch: str = "", parent: str = ""
) -> FlowRun:
    """Create a run without starting it, so that its id and address are known before it starts."""
    given = settings.model_dump(mode="json", exclude_unset=True)  # a follow-up inherits the others
    asked = {"query": query, "settings": given, "run_key": run_key, "watch": watch, "parent": parent}
    return await new_run(deep_research, asked)


async def new_run(flow: Flow[..., Any], parameters: Mapping[str, Any]) -> FlowRun:
    """Create a run of a flow without starting it."""
    # The client writes the parameters as JSON by itself; `Flow.serialize_parameters` imports FastAPI for that.
    async with prefect_client() as client:
        return await client.create_flow_run(flow, parameters=dict(parameters), state=Pending())


async def execute(flow_run: FlowRun) -> RunResult:
    """Run a flow run of the pipeline in this process and return its result.

    Raises:
        FathomError: the run failed or was stopped; it can be resumed.
    """
    return await result_in(await run_here(deep_research, flow_run))


async def run_here(flow: Flow[..., Any], flow_run: FlowRun) -> State[Any]:
    """Run a flow run in this process; its id is recorded, so that no other resumes the run before it has a lease.

    Raises:
        FathomError: the run was stopped; it can be resumed.
    """
    async with prefect_client() as client:
        await client.update_flow_run(flow_run.id, infrastructure_pid=f"{socket.gethostname()}:{os.getpid()}")
    outcome = run_flow(flow, flow_run=flow_run, parameters=flow_run.parameters, return_type="state")
    assert asyncio.iscoroutine(outcome), "the flow is a coroutine function"
    try:
        state = await outcome
        assert isinstance(state, State)
        return state
    except Abort as abort:
        if isinstance(abort.__cause__, FathomError):
            raise abort.__cause__ from None
        raise FathomError(f"Prefect does not let the run continue: {abort}") from None
    except httpx.TransportError as error:
        raise ServerLost(f"The Prefect server no longer answers: {error!r}.", next_step="start it again") from error


async def result_of(flow_run: FlowRun) -> RunResult | None:
    """Return the result of a finished run from its artifacts; None when it has none there."""
    if flow_run.state_type is not StateType.COMPLETED and ending_of(flow_run.state) is None:
        return None
    store, key = place(str(flow_run.id), flow_run.parameters)
    results = [await RunFolder(store, folder).result() for folder in await recorded_folders(store, key)]
    own = [result for result in results if result and result.run_id == str(flow_run.id)]
    return next(iter(own or results), None)


def address(flow_run: FlowRun) -> str:
    """Return the address of the run's page in the Prefect UI."""
    return url_for("flow-run", obj_id=flow_run.id) or ""
