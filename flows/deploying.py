"""The work pool, and deployments made by commands; `prefect.yaml` has those that a person deploys.

Imports Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.objects import ConcurrencyLimitStrategy, ConcurrencyOptions
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.workers.process import ProcessWorker
from pydantic_core import to_jsonable_python

ROOT = Path(__file__).parent.parent
POOL = "fathom"
_PULL = [{"prefect.deployments.steps.set_working_directory": {"directory": "."}}]
"""A worker is started in the root of a checkout, so no deployment names a folder of one machine."""
_CANCEL_NEW = ConcurrencyOptions(collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW)


async def ensure_pool(name: str = POOL) -> None:
    """Create a work pool unless there is one of that name. Its runs can also be run by Prefect's process worker."""
    template = ProcessWorker.get_default_base_job_template()
    async with get_client() as client:
        try:
            await client.read_work_pool(name)
        except ObjectNotFound:
            try:
                await client.create_work_pool(WorkPoolCreate(name=name, type="process", base_job_template=template))
            except ObjectAlreadyExists:  # another process was quicker
                return


async def deploy(
    name: str,
    flow: Flow[..., Any],
    *,
    description: str = "",
    parameters: Mapping[str, Any] | None = None,
    schedules: Sequence[DeploymentScheduleCreate] = (),
    tags: Sequence[str] = ("fathom",),
    pool: str = POOL,
    one_at_a_time: bool = False,
) -> UUID:
    """Create a deployment, or replace the one of that flow and name, and return its id. Creates the pool if needed.

    Args:
        name: without the flow's name and the slash.
        flow: one of `flows/`; workers find it by its file, from the root of their own checkout.
        description: what the UI shows of it.
        parameters: of its runs, where a run gives no others.
        schedules: when it runs by itself.
        tags: of its runs.
        pool: the work pool whose workers run it.
        one_at_a_time: cancel a run that is due while another one is under way.
    """
    await ensure_pool(pool)
    file = Path(inspect.getfile(flow.fn)).relative_to(ROOT)
    async with get_client() as client:
        return await client.create_deployment(
            flow_id=await client.create_flow(flow),
            name=name,
            description=description,
            parameters=to_jsonable_python(dict(parameters or {})),
            schedules=list(schedules),
            tags=list(tags),
            work_pool_name=pool,
            job_variables={"working_dir": "."},
            entrypoint=f"{file}:{flow.fn.__name__}",
            pull_steps=_PULL,
            concurrency_limit=1 if one_at_a_time else None,
            concurrency_options=_CANCEL_NEW if one_at_a_time else None,
            parameter_openapi_schema=flow.parameters.model_dump_for_openapi(),
            enforce_parameter_schema=True,
        )
