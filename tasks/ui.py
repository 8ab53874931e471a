"""A run's page in the Prefect UI: its tags, its plan, its report or why there is none, and its sources."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from time import monotonic
from typing import Any, Self
from uuid import UUID

import httpx
from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, ArtifactFilterKey
from prefect.runtime import flow_run

from fathom.changes.model import Changes
from fathom.config.groups import Role
from fathom.config.settings import ResolvedSettings
from fathom.models import Ending, Plan, Report, StepStatus
from fathom.report.changes import render_changes
from fathom.report.markdown import render_markdown
from fathom.report.quotations import escaped
from fathom.tasks.clients import prefect_client
from fathom.tasks.durable import current_run_id, run_logger
from fathom.text.plain import counted

PLAN_SECONDS = 10.0  # seconds between two changes of the plan's table, except for the last


class Display:
    """The artifacts of a run's page, drawn in order while the research continues.

    An async context manager, which waits for the last of them. One that the server refuses is left out, and the run's
    log says so. A replay, which has no page, shows nothing.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self._shown = shown
        self._last: asyncio.Task[None] | None = None
        self._drawn: dict[str, UUID] = {}  # artifacts by key
        self._tags = {*flow_run.tags} - {*Ending} if shown else set()
        self._plan_drawn = float("-inf")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._last is None:
            return
        if error is not None:
            self._last.cancel()
        await asyncio.wait([self._last])
        if error is None:
            self._last.result()

    def label(self, settings: ResolvedSettings) -> None:
        """Tag the flow run with its profile and the reporter's model, to filter by in the UI."""
        self._tag({settings.profile.value, settings.role_models[Role.reporter].model})

    def plan(self, plan: Plan, now: Collection[str]) -> None:
        """Show the plan as a table with its progress; later changes appear in the same table.

        `now` are the ids of the steps that are being researched.
        """
        table = [
            {"step": str(s.step_id), "title": s.title, "status": plan.state_of(s, now), "description": s.description}
            for s in plan.steps
        ]
        finished = sum(step.status is not StepStatus.todo for step in plan.steps)
        if finished < len(table) and monotonic() - self._plan_drawn < PLAN_SECONDS:
            return
        self._plan_drawn = monotonic()
        terms = "".join(f"\n- {escaped(said)}" for said in plan.told)
        title = f"### {escaped(plan.plan_title)}\n{terms}\n\n{finished} of {counted(len(table), 'step')} finished"
        self._later(lambda: self._put("research-plan", "table", json.dumps(table), title))

    def table(self, key: str, rows: Sequence[Mapping[str, Any]], title: str) -> None:
        """Show a table, or change the table of that key."""
        data = json.dumps(rows)
        self._later(lambda: self._put(key, "table", data, title))

    def report(self, report: Report, page: str) -> None:
        """Show the report, with links to the pages it cites and the place of its own page, and its sources."""
        markdown = render_markdown(report, linked=True)
        place = f"With the evidence for each sentence, to open in a browser: {_copyable(page)}"
        self._later(lambda: self._put("research-report", "markdown", markdown, place))
        table = json.dumps(_sources(report))
        self._later(lambda: self._put("research-sources", "table", table, "### Sources of the report"))

    def refusal(self, markdown: str, folder: str) -> None:
        """Show why there is no report, and where to find the texts that were read."""
        text = f"{markdown}\nAll that was read: {_copyable(folder)}"
        self._later(lambda: self._put("research-report", "markdown", text, "Why there is no report"))

    def changes(self, changes: Changes, page: str) -> None:
        """Show the changes since the previous run, and the place of the changes page."""
        place = f"To open in a browser: {_copyable(page)}"
        self._later(lambda: self._put("research-changes", "markdown", render_changes(changes), place))

    def end(self, ending: Ending) -> None:
        """Tag the flow run with its ending."""
        self._tag({ending.value})

    def _later(self, drawing: Callable[[], Awaitable[object]]) -> None:
        if self._shown:
            self._last = asyncio.create_task(self._draw(self._last, drawing))

    async def _draw(self, earlier: asyncio.Task[None] | None, drawing: Callable[[], Awaitable[object]]) -> None:
        if earlier:
            await earlier
        try:
            await drawing()
        except httpx.HTTPError as error:  # a run is worth more than its page
            run_logger().warning("the server refused an artifact of this run's page: %s", error)

    async def _put(self, key: str, kind: str, data: str, description: str) -> None:
        """Create an artifact of the run, or change the one that it has, also from an earlier attempt."""
        run_id = UUID(current_run_id())
        async with prefect_client() as client:
            if key not in self._drawn and (flow_run.run_count or 1) > 1:
                of_run, of_key = ArtifactFilterFlowRunId(any_=[run_id]), ArtifactFilterKey(any_=[key])
                own = ArtifactFilter(flow_run_id=of_run, key=of_key)
                self._drawn |= {str(found.key): found.id for found in await client.read_artifacts(artifact_filter=own)}
            if key in self._drawn:
                await client.update_artifact(self._drawn[key], ArtifactUpdate(data=data, description=description))
                return
            created = await client.create_artifact(
                ArtifactCreate(key=key, type=kind, data=data, description=description, flow_run_id=run_id)
            )
            self._drawn[key] = created.id

    def _tag(self, tags: set[str]) -> None:
        """Add tags to the flow run, and remove the tag of an earlier attempt's ending."""
        self._tags |= tags
        run_id, now = UUID(current_run_id()), sorted(self._tags)
        self._later(lambda: _tag(run_id, now))


def _sources(report: Report) -> list[dict[str, Any]]:
    qualities = {quality.source_id: quality for quality in report.qualities}
    return [
        {
            "number": number,
            "title": source.title,
            "claims": sum(source.source_id in claim.source_ids for claim in report.claims),
            "type": quality.type if quality else "",
            "score": quality.overall if quality else "",
            "date": quality.published if quality else source.published,
            "flags": ", ".join(quality.flags).replace("_", " ") if quality else "",
            "address": source.url,
        }
        for number, source in enumerate(report.sources, 1)
        for quality in [qualities.get(source.source_id)]
    ]


def _copyable(place: str) -> str:
    """Return a path or an address to copy, because a browser opens no file for a page from the web, nor `s3:`."""
    return f"`{place}`" if "`" not in place else escaped(place)


async def _tag(flow_run_id: UUID, tags: list[str]) -> None:
    async with prefect_client() as client:
        await client.update_flow_run(flow_run_id, tags=tags)
