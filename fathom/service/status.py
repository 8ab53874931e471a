"""What a server can do: its models, tools and caps, what a request would cost, and what the runs have cost."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal

from fathom.client.resources import (
    CostLine,
    CostTable,
    Estimate,
    Status,
    TemplateList,
    TemplateSummary,
)
from fathom.client.shapes import RunRequest
from fathom.config.environment import Environment
from fathom.config.given import settings_from
from fathom.config.inputs import parse_since
from fathom.config.settings import ResearchSettings, ResolvedSettings, resolve
from fathom.config.templates import shipped, template_of
from fathom.errors import UserError
from fathom.flows.operations.costs import By, CostRow, costs_of
from fathom.flows.operations.diagnosis import examine
from fathom.flows.preflight import estimated, searched_in
from fathom.models.run import PhaseCost
from fathom.service.caller import AccessRole, Caller
from fathom.service.runs import OF_THE_SERVER, RunService
from fathom.tools.registry import REGISTRY, configured_tools, prices_of


async def status(service: RunService, caller: Caller) -> Status:
    """Return what the server's runs use; administrators also learn what is wrong with it."""
    caller.check(AccessRole.reader)
    environment = Environment.read()
    settings = ResearchSettings(artifacts=service.options.artifacts)
    tools = configured_tools(settings, environment)
    resolved = resolve(settings, environment, tools)
    found = await asyncio.to_thread(lambda: list(examine())) if caller.is_admin else []
    return Status(
        version=version("fathom-research"),
        models={role.value: chosen.model for role, chosen in resolved.role_models.items()},
        tools=tools,
        search=_vendors(resolved, environment),
        caps={name: cap for name, cap in resolved.budget.model_dump().items() if isinstance(cap, int | float)},
        conditions=found,
    )


async def estimate(service: RunService, caller: Caller, request: RunRequest) -> Estimate:
    """Return what a request would use, by phase; nothing is started or written.

    Raises:
        NotAllowed: the caller may not ask, or not with these settings.
        InvalidInput: it could not be run.
    """
    caller.check(AccessRole.asker)
    settings = service.settings_for(caller, request.settings, request.template)
    rows = await asyncio.to_thread(estimated, request.question, settings)
    return Estimate(phases=rows)


def whole_estimate(question: str, given: dict[str, Any]) -> PhaseCost | None:
    """Return what a question would use in all with some settings; None if that cannot be told. It blocks."""
    try:
        return estimated(question, settings_from(given))[-1]
    except UserError:
        return None


def searched_by_itself(service: RunService) -> str:
    """Return what a question without settings searches for want of documents and a web search.

    Empty if there are any, or if that cannot be told.
    """
    try:
        return searched_in(settings_from({"docs": [*service.options.docs]}))
    except UserError:
        return ""


def templates() -> TemplateList:
    """Return the kinds of research that there are templates for."""
    found = [template_of(name) for name in shipped()]
    return TemplateList(
        templates=[TemplateSummary(name=one.name, title=one.title, description=one.description) for one in found]
    )


async def costs(
    service: RunService, caller: Caller, since: str, by: Literal["model", "day", "deployment"]
) -> CostTable:
    """Return what the runs that began since a time have cost.

    Raises:
        NotAllowed: the caller is no administrator.
        InvalidInput: the time cannot be read.
    """
    caller.check(AccessRole.admin)
    begin = parse_since(since, datetime.now(UTC))
    found = await costs_of(service.store, begin, By(by))
    return CostTable(
        since=begin.isoformat(),
        by=by,
        lines=[_line(row) for row in found.rows],
        total=_line(found.total),
        unsettled_usd=found.unsettled_usd,
        rated_up=found.rated.up,
        rated_down=found.rated.down,
    )


def settings_schema() -> dict[str, Any]:
    """Return the JSON schema of the settings that a request may have."""
    schema = ResearchSettings.model_json_schema()
    for name in OF_THE_SERVER:
        del schema["properties"][name]
    return schema


def _vendors(settings: ResolvedSettings, environment: Environment) -> list[str]:
    if "web_search" not in settings.tools:
        return []
    return [*prices_of(settings, environment, REGISTRY.vendors)]


def _line(row: CostRow) -> CostLine:
    used = row.used
    return CostLine(
        name=row.name,
        runs=row.runs,
        unpriced_runs=row.unpriced_runs,
        calls=used.calls,
        sent=used.sent,
        cached=used.cached,
        received=used.received,
        usd=float(used.usd),
    )
