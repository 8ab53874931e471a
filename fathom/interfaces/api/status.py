"""The server: what it can do and what that costs, what who asks may use, and whether it lives and can work."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query

from fathom.client.resources import CostTable, Estimate, Status, TemplateList
from fathom.client.shapes import Me, RunRequest
from fathom.config.templates import UsedTemplate, shipped, template_of
from fathom.errors import NotThere
from fathom.interfaces.dependencies import JSON_ONLY, TheCaller, TheGate, TheService
from fathom.interfaces.gate import LOCAL, PER_MINUTE
from fathom.service import status

router = APIRouter(prefix="/api/v1")


@router.get("/templates", summary="List templates", tags=["server"])
async def list_templates() -> TemplateList:
    """List the kinds of research that there are templates for."""
    return status.templates()


@router.get("/templates/{name}", summary="Read a template", tags=["server"])
async def read_template(
    name: Annotated[str, Path(max_length=100, description="Name of the template.", examples=["due-diligence"])],
) -> UsedTemplate:
    """Return what a template sets: settings, rules for sources, questions to answer, sections of the report."""
    if name not in shipped():
        raise NotThere(f"There is no template {name[:60]!r}.", next_step="GET /api/v1/templates lists them")
    return template_of(name)


@router.post("/estimates", summary="Estimate a run", dependencies=JSON_ONLY, tags=["server"])
async def estimate_run(request: RunRequest, service: TheService, caller: TheCaller) -> Estimate:
    """Say what a run would use and cost, by phase, without starting it."""
    return await status.estimate(service, caller, request)


@router.get("/costs", summary="Read the costs", tags=["server"])
async def read_costs(
    service: TheService,
    caller: TheCaller,
    since: Annotated[
        str, Query(max_length=40, description="Start of the period: 30d, 12h, or a date.", examples=["30d"])
    ] = "30d",
    by: Annotated[Literal["model", "day", "deployment"], Query(description="How the costs are grouped.")] = "model",
) -> CostTable:
    """Say what the runs of the store have cost. For administrators."""
    return await status.costs(service, caller, since, by)


@router.get("/settings/schema", summary="Read the schema of settings", tags=["server"])
async def read_settings_schema() -> dict[str, Any]:
    """Return the JSON schema of a run's settings, for programs that build forms."""
    return status.settings_schema()


@router.get("/status", summary="Read the server's status", tags=["server"])
async def read_status(service: TheService, caller: TheCaller) -> Status:
    """Say which models, tools and search vendors runs use, and their caps. No secret is told."""
    return await status.status(service, caller)


@router.get("/health", summary="Ask whether the server lives", tags=["health"])
async def health() -> dict[str, str]:
    """Say that the server lives."""
    return {"status": "ok"}


@router.get("/ready", summary="Ask whether the server can work", tags=["health"])
async def ready(service: TheService) -> dict[str, str]:
    """Say that a question would be researched: Prefect answers, the store can be written, and a worker lives."""
    await service.readiness.check()
    return {"status": "ok"}


@router.get("/me", tags=["access"])
async def read_me(service: TheService, gate: TheGate, caller: TheCaller) -> Me:
    """Return your name and role, your limits and what is left of them."""
    limits = caller.limits
    per_minute = None if caller == LOCAL else limits.requests_per_minute or PER_MINUTE
    runs_left, usd_left = await service.spending.left(caller)
    return Me(
        name=caller.name,
        role=caller.role.value,
        requests_per_minute=per_minute,
        requests_left=gate.rates.left(caller.name, per_minute) if per_minute else None,
        runs_per_day=limits.runs_per_day,
        runs_left=runs_left,
        daily_usd=limits.daily_usd,
        usd_left=usd_left,
    )
