"""What the Prefect UI shows of a run: its tags, plan, progress, report and folder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Self
from uuid import UUID

import httpx
from prefect.artifacts import (
    acreate_link_artifact,
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectHTTPStatusError

from fathom.config.models import Role
from fathom.config.settings import ResolvedSettings
from fathom.models import Plan, Report
from fathom.report.escaping import escaped
from tasks.durable import current_run_id, run_logger


class Display:
    """The artifacts of a run's page, created in order while the research continues.

    An async context manager, which waits for the last of them. One that the server refuses is left out, and the run's
    log says so. A replay, which has no page, shows nothing.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self._shown = shown
        self._last: asyncio.Task[None] | None = None
        self._bar: UUID | None = None

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
        run_id, tags = UUID(current_run_id()), {settings.profile.value, settings.role_models[Role.reporter].model}
        self._later(lambda: _label(run_id, tags))

    def plan(self, plan: Plan) -> None:
        """Show the plan as a table; each change adds a version."""
        table = [
            {"step": str(s.step_id), "title": s.title, "status": s.status.value, "description": s.description}
            for s in plan.steps
        ]
        title = f"### {escaped(plan.plan_title)}"
        self._later(lambda: acreate_table_artifact(key="research-plan", description=title, table=table))

    def progress(self, done: int, total: int) -> None:
        """Show how many steps of the plan are finished."""
        self._later(lambda: self._progress(100 * done / total if total else 0.0))

    def folder(self, url: str) -> None:
        """Link the folder of the run's files."""
        link = url if "://" in url else f"file://{url}"
        self._later(
            lambda: acreate_link_artifact(
                key="research-folder", link=link, link_text=url, description="All files of the run"
            )
        )

    def report(self, report: Report, markdown: str) -> None:
        """Show the report, its warnings, and its sources as a table."""
        self._later(lambda: acreate_markdown_artifact(key="research-report", markdown=markdown))
        if report.warnings:
            box = "\n".join(
                ["> **Before you rely on it**", ">", *(f"> - ⚠ {escaped(warning)}" for warning in report.warnings)]
            )
            self._later(lambda: acreate_markdown_artifact(key="research-warnings", markdown=box))
        table = _sources(report)
        self._later(
            lambda: acreate_table_artifact(key="research-sources", table=table, description="### Sources of the report")
        )

    def _later(self, drawing: Callable[[], Awaitable[object]]) -> None:
        if self._shown:
            self._last = asyncio.create_task(self._draw(self._last, drawing))

    async def _draw(self, earlier: asyncio.Task[None] | None, drawing: Callable[[], Awaitable[object]]) -> None:
        if earlier:
            await earlier
        try:
            await drawing()
        except (PrefectHTTPStatusError, httpx.HTTPError) as error:  # a run is worth more than its page
            run_logger().warning("the server refused an artifact of this run's page: %s", error)

    async def _progress(self, percent: float) -> None:
        if self._bar is None:
            self._bar = await acreate_progress_artifact(
                progress=percent, key="research-progress", description="Finished steps of the plan"
            )
        else:
            await aupdate_progress_artifact(artifact_id=self._bar, progress=percent)


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


async def _label(flow_run_id: UUID, tags: set[str]) -> None:
    async with get_client() as client:
        present = (await client.read_flow_run(flow_run_id)).tags
        await client.update_flow_run(flow_run_id, tags=sorted({*present, *tags}))
