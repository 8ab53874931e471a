"""What a person sees of a run in the Prefect UI: the plan, the progress, the report, the folder."""

from __future__ import annotations

from uuid import UUID

from prefect.artifacts import (
    acreate_link_artifact,
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.client.orchestration import get_client

from fathom.models import Plan
from fathom.settings import ResolvedSettings, Role
from tasks.durable import current_run_id

__all__ = ["Progress", "label_run", "show_folder", "show_plan", "show_report"]


class Progress:
    """A progress bar on the run's page, in steps of the plan."""

    def __init__(self) -> None:
        self._artifact: UUID | None = None

    async def show(self, done: int, total: int) -> None:
        """Draw the bar at its present length."""
        percent = 100 * done / total if total else 0.0
        if self._artifact is None:
            self._artifact = await acreate_progress_artifact(
                progress=percent, key="research-progress", description="Steps of the plan that are finished"
            )
        else:
            await aupdate_progress_artifact(artifact_id=self._artifact, progress=percent)


async def label_run(settings: ResolvedSettings) -> None:
    """Tag the flow run with its profile and the reporter's model, which the UI filters by."""
    async with get_client() as client:
        flow_run_id = UUID(current_run_id())
        tags = {*(await client.read_flow_run(flow_run_id)).tags, settings.profile.value}
        await client.update_flow_run(flow_run_id, tags=sorted({*tags, settings.models[Role.reporter].model}))


async def show_plan(plan: Plan) -> None:
    """Show the plan as a table; each change of a status adds a version."""
    await acreate_table_artifact(
        key="research-plan",
        description=f"### {plan.plan_title}",
        table=[
            {"step": str(s.step_id), "title": s.title, "status": s.status.value, "description": s.description}
            for s in plan.steps
        ],
    )


async def show_folder(url: str) -> None:
    """Link the folder that holds everything the run keeps."""
    link = url if "://" in url else f"file://{url}"
    await acreate_link_artifact(key="research-folder", link=link, link_text=url, description="Artifacts of the run")


async def show_report(markdown: str) -> None:
    """Show the report."""
    await acreate_markdown_artifact(key="research-report", markdown=markdown)
