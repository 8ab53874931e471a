"""What the server can do: templates, settings, estimates, costs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query

from fathom.client.shapes import RunRequest
from fathom.client.standing import CostTable, Estimate, Status, TemplateList, TemplateSummary
from fathom.config.templates import UsedTemplate, shipped, template_of
from fathom.errors import NotThere
from fathom.interfaces.api.parts import JSON_ONLY
from fathom.interfaces.dependencies import TheCaller, TheDesk
from fathom.service import status

router = APIRouter(prefix="/api/v1", tags=["server"])


@router.get("/templates", summary="List templates")
async def list_templates() -> TemplateList:
    """List the kinds of research that there are templates for."""
    found = [template_of(name) for name in shipped()]
    return TemplateList(
        templates=[TemplateSummary(name=one.name, title=one.title, description=one.description) for one in found]
    )


@router.get("/templates/{name}", summary="Read a template")
async def read_template(
    name: Annotated[str, Path(max_length=100, description="Name of the template.", examples=["due-diligence"])],
) -> UsedTemplate:
    """Return what a template sets: settings, rules for sources, questions to answer, sections of the report."""
    if name not in shipped():
        raise NotThere(f"There is no template {name[:60]!r}.", next_step="GET /api/v1/templates lists them")
    return template_of(name)


@router.post("/estimates", summary="Estimate a run", dependencies=JSON_ONLY)
async def estimate_run(request: RunRequest, desk: TheDesk, caller: TheCaller) -> Estimate:
    """Say what a run would use and cost, by phase, without starting it."""
    return await status.estimate(desk, caller, request)


@router.get("/costs", summary="Read the costs")
async def read_costs(
    desk: TheDesk,
    caller: TheCaller,
    since: Annotated[
        str, Query(max_length=40, description="Start of the period: 30d, 12h, or a date.", examples=["30d"])
    ] = "30d",
    by: Annotated[Literal["model", "day", "deployment"], Query(description="How the costs are grouped.")] = "model",
) -> CostTable:
    """Say what the runs of the store have cost. For administrators."""
    return await status.costs(desk, caller, since, by)


@router.get("/settings/schema", summary="Read the schema of settings")
async def read_settings_schema() -> dict[str, Any]:
    """Return the JSON schema of a run's settings, for programs that build forms."""
    return status.settings_schema()


@router.get("/status", summary="Read the server's status")
async def read_status(desk: TheDesk, caller: TheCaller) -> Status:
    """Say which models, tools and search vendors runs use, and their caps. No secret is told."""
    return await status.status(desk, caller)
