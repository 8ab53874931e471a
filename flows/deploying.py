"""The work pool, deployments made by commands, and the deployments of `prefect.yaml`, which the package contains.

Imports Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.resources import files
from typing import Any
from uuid import UUID

import yaml
from prefect import Flow
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.objects import ConcurrencyLimitStrategy, ConcurrencyOptions
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.workers.process import ProcessWorker
from pydantic_core import to_jsonable_python

from fathom.errors import InvalidInput

POOL = "fathom"
_CANCEL_NEW = ConcurrencyOptions(collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW)
_POOL_NAME = re.compile(r"(?!prefect)[^/%&><]+", re.IGNORECASE)  # Prefect keeps its own name for itself
SILENT_SECONDS = 25  # Prefect's workers ask for runs every 10 seconds
LATE = 1.4  # heartbeat intervals; a worker may take 1.3


async def unattended(client: PrefectClient, pool: str) -> str:
    """Return what to tell somebody who waits for a worker of a work pool; empty if one was heard of in time.

    Prefect itself counts a killed worker as running for up to 90 seconds. A worker that is full may not ask for runs,
    and only its heartbeat tells of it.
    """
    heard = [
        worker.last_heartbeat_time + timedelta(seconds=LATE * worker.heartbeat_interval_seconds)
        for worker in await client.read_workers_for_work_pool(pool)
        if worker.last_heartbeat_time and worker.heartbeat_interval_seconds
    ]
    polled = [queue.last_polled for queue in await client.read_work_queues(work_pool_name=pool) if queue.last_polled]
    in_time = [*heard, *(last + timedelta(seconds=SILENT_SECONDS) for last in polled)]
    if any(until > datetime.now(UTC) for until in in_time):
        return ""
    command = "fathom worker" + ("" if pool == POOL else f" --pool {pool}")
    return f"no worker has polled the pool {pool} for {SILENT_SECONDS} s: start one with `{command}`"


async def ensure_pool(name: str = POOL) -> None:
    """Create a work pool unless there is one of that name. Its runs can also be run by Prefect's process worker.

    Raises:
        InvalidInput: Prefect allows no pool of that name.
    """
    if not _POOL_NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} cannot be the name of a work pool.", next_step="use letters, digits and hyphens")
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
    """Create a deployment, or replace the flow's deployment of that name, and return its id. Creates a missing pool.

    Args:
        name: without the flow's name and the slash.
        flow: one of `flows/`; workers find it by the name of its module, wherever Fathom is installed.
        description: text that the UI shows.
        parameters: default parameters of its runs.
        schedules: schedules of its runs.
        tags: tags of its runs.
        pool: the work pool whose workers run it.
        one_at_a_time: cancel a run that is due while another one is under way.
    """
    await ensure_pool(pool)
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
            entrypoint=f"{flow.fn.__module__}.{flow.fn.__name__}",
            concurrency_limit=1 if one_at_a_time else None,
            concurrency_options=_CANCEL_NEW if one_at_a_time else None,
            parameter_openapi_schema=flow.parameters.model_dump_for_openapi(),
            enforce_parameter_schema=True,
        )


async def deploy_shipped(pool: str) -> dict[str, str]:
    """Create or replace the deployments that come with Fathom; return the description of each, by flow and name."""
    declared = yaml.safe_load(files("fathom").joinpath("prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    made: dict[str, str] = {}
    for one in declared:
        file, function = one["entrypoint"].split(":")
        flow = getattr(import_module(f"fathom.{file.removesuffix('.py').replace('/', '.')}"), function)
        await deploy(
            one["name"],
            flow,
            description=one["description"],
            parameters=one.get("parameters"),
            schedules=[
                DeploymentScheduleCreate(
                    schedule=CronSchedule(cron=each["cron"], timezone=each["timezone"]), active=each["active"]
                )
                for each in one["schedules"]
            ],
            tags=one["tags"],
            pool=pool,
        )
        made[f"{flow.name}/{one['name']}"] = one["description"]
    return made
