"""The work pool, deployments made by commands, and the deployments of `prefect.yaml`, which the package contains.

Imports Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.resources import files
from typing import Any
from uuid import UUID

import httpx
import yaml
from prefect import Flow
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import DeploymentFlowRunCreate, DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.objects import ConcurrencyLimitStrategy, ConcurrencyOptions, FlowRun
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.states import Scheduled, to_state_create
from prefect.workers.process import ProcessWorker
from pydantic_core import to_jsonable_python

from fathom.errors import InvalidInput
from fathom.flows.runs.states import FLOW
from fathom.storage.lease import is_gone
from fathom.tasks.clients import prefect_client

POOL = "fathom"
ON_DEMAND = f"{FLOW}/on-demand"
"""The deployment that researches a question unless another is named."""
_CANCEL_NEW = ConcurrencyOptions(collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW)
_POOL_NAME = re.compile(r"(?!prefect)[^/%&><]+", re.IGNORECASE)  # Prefect keeps its own name for itself
SILENT_SECONDS = 20  # Prefect's workers ask for runs every 7 to 13 seconds
LATE = 1.4  # heartbeat intervals; a worker may take 1.3
_OWN = "fathom"


def own_name() -> str:
    """Return the name of a worker in this process."""
    return f"{_OWN} {socket.gethostname()} {os.getpid()}"


def process_of(name: str) -> tuple[str, int] | None:
    """Return the host and the process id from a worker's automatic name; None for other names."""
    own, _, where = name.partition(" ")
    host, _, pid = where.rpartition(" ")
    return (host, int(pid)) if own == _OWN and pid.isdecimal() else None


def is_dead(name: str) -> bool:
    """Whether a worker of this machine with an automatic name was killed, which the server notices only later."""
    process = process_of(name)
    return process is not None and is_gone(*process)


async def living(client: PrefectClient, pool: str) -> list[str]:
    """Return the names of the workers that serve a work pool; none if there is no such pool.

    Prefect itself counts a killed worker as running for up to 90 seconds. Its own workers send a heartbeat every 30
    seconds, but ask for runs much more often; a worker of Fathom that is full does not ask.
    """
    return (await _living(client, pool))[0]


async def unattended(pool: str) -> str:
    """Return what to tell somebody who waits for a worker of a work pool.

    It is empty if a worker serves the pool, and if Prefect does not answer: then nobody knows.
    """
    try:
        async with prefect_client() as client:
            workers, polled = await _living(client, pool)
    except httpx.HTTPError:
        return ""
    if workers:
        return ""
    command = "fathom worker" + ("" if pool == POOL else f" --pool {pool}")
    silent = polled and round((datetime.now(UTC) - polled).total_seconds())
    since = "" if silent is None else f" (the last one asked for runs {silent} s ago)"
    return f"No worker serves the pool {pool}{since}: start one with `{command}`."


async def _living(client: PrefectClient, pool: str) -> tuple[list[str], datetime | None]:
    """Return the names of the workers that serve a pool, and when a worker last asked for runs."""
    try:
        queues = await client.read_work_queues(work_pool_name=pool)
    except ObjectNotFound:
        return [], None
    now = datetime.now(UTC)
    polled = max((queue.last_polled for queue in queues if queue.last_polled), default=None)
    silent = polled is None or now - polled > timedelta(seconds=SILENT_SECONDS)
    names = [
        worker.name
        for worker in await client.read_workers_for_work_pool(pool)
        if worker.last_heartbeat_time
        and (interval := worker.heartbeat_interval_seconds or SILENT_SECONDS)
        and now - worker.last_heartbeat_time < timedelta(seconds=LATE * interval)
        and not (silent and interval > SILENT_SECONDS)
        and not is_dead(worker.name)
    ]
    return names, polled


async def create_run(
    client: PrefectClient,
    deployment: UUID,
    parameters: Mapping[str, Any] | None = None,
    *,
    tags: Sequence[str] = (),
    key: str | None = None,
) -> FlowRun:
    """Have a run of a deployment created, of parameters that were checked here; with the same key, the same run again.

    Prefect's server checks what its own form is given. It would check these too, by a schema of all settings, which
    takes it longer than all else that it does for a run: a method of its client cannot say that it need not.
    """
    asked = DeploymentFlowRunCreate(
        state=to_state_create(Scheduled()),
        parameters=dict(parameters or {}),
        tags=[*tags],
        idempotency_key=key,
        enforce_parameter_schema=False,
    )
    body, at = asked.model_dump(mode="json", exclude_unset=True), {"id": deployment}
    answer = await client.request("POST", "/deployments/{id}/create_flow_run", path_params=at, json=body)
    return FlowRun.model_validate(answer.json())


async def ensure_pool(name: str = POOL) -> None:
    """Create a work pool unless there is one of that name. Its runs can also be run by Prefect's process worker.

    Raises:
        InvalidInput: Prefect allows no pool of that name.
    """
    if not _POOL_NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} cannot be the name of a work pool.", next_step="use letters, digits and hyphens")
    template = ProcessWorker.get_default_base_job_template()
    async with prefect_client() as client:
        try:
            await client.read_work_pool(name)
        except ObjectNotFound:
            try:
                await client.create_work_pool(WorkPoolCreate(name=name, type="process", base_job_template=template))
            except ObjectAlreadyExists:  # another process was quicker
                return


async def pool_of(deployment: str) -> str | None:
    """Return the work pool of a deployment; None if it is the default pool, which does not exist yet.

    Raises:
        InvalidInput: there is no such deployment, or it has no work pool.
    """
    async with prefect_client() as client:
        try:
            found = await client.read_deployment_by_name(deployment)
        except ObjectNotFound:
            if deployment == ON_DEMAND:
                return None
            raise InvalidInput(
                f"There is no deployment {deployment!r}.", next_step="prefect deployment ls lists them"
            ) from None
    if not found.work_pool_name:
        raise InvalidInput(f"{deployment} has no work pool.", next_step="deploy it to one")
    return found.work_pool_name


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
    async with prefect_client() as client:
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
