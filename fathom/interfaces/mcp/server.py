"""The tools and resources of the MCP server. Loads the package `mcp`: import it late.

A tool that waits does not wait long unless the client shows that it hears of progress: clients give up after a minute,
and a client that gives up must still have the id of the run. So giving up, or cancelling a call, does not end the run.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import wraps
from importlib.metadata import version
from typing import Annotated, Any, ParamSpec, TypeVar

import httpx
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from fathom.client.shapes import FollowUpRequest, Run, RunRequest
from fathom.config import groups
from fathom.config.settings import SETTINGS
from fathom.errors import FathomError, NoReport, RunNotFound
from fathom.interfaces.mcp.reports import (
    Cancelled,
    CheckedClaim,
    FoundRun,
    FoundRuns,
    Section,
    Started,
    Status,
    answer_of,
    check_claim,
    section_of,
    why_no_report,
)
from fathom.models import RunState
from fathom.service.caller import Caller
from fathom.service.outages import outage
from fathom.service.progress import Begun, progress
from fathom.service.reports import exported
from fathom.service.run_list import RunFilter
from fathom.service.runs import RunHandle, RunService
from fathom.service.status import settings_schema

LONGEST = 50.0
"""Seconds that a call may last without progress: clients give up after 60."""
MOST_LINES = 10
INSTRUCTIONS = (
    "Fathom researches a question and writes a report in which every claim cites stored evidence. A run takes from "
    "seconds to many minutes. Start one with research_start, call research_status until `ended` is true, then read the "
    "answer, and sections with read_report where the answer is not enough. Cite sources by their addresses."
)
Question = Annotated[str, Field(min_length=1, max_length=10_000, description="A whole question, understood by itself.")]
RunId = Annotated[str, Field(description="The run_id that a tool returned.")]
Profile = Annotated[
    groups.Profile | None,
    Field(description=f"{SETTINGS['profile'].description} Default: {SETTINGS['profile'].default}."),
]
MaxUsd = Annotated[float | None, Field(gt=0, description=SETTINGS["budget.max_usd"].description)]
Settings = Annotated[
    dict[str, Any] | None, Field(description="More settings by name, as the resource fathom://settings has them.")
]
Wait = Annotated[
    float, Field(ge=0, le=LONGEST, description="Seconds to wait for the end of the run; 0 answers at once.")
]
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ASKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
_ENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _said(tool: Callable[_P, Awaitable[_R]]) -> Callable[_P, Awaitable[_R]]:
    """Tell the client what failed: of other errors it learns nothing."""

    @wraps(tool)
    async def telling(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return await tool(*args, **kwargs)
        except FathomError as error:
            tools: Any = args[0]
            raise ToolError(tools.told(error, kwargs["ctx"])) from error
        except httpx.HTTPError as error:
            raise ToolError(str(outage(error))) from error

    return telling


def create_server(service: RunService, caller_of: Callable[[Context], Caller]) -> MCPServer[Any]:
    """Return an MCP server whose tools do what somebody may with the runs of a service."""
    server: MCPServer[Any] = MCPServer(
        "fathom",
        title="Fathom",
        instructions=INSTRUCTIONS,
        version=version("fathom-research"),
        log_level="ERROR",
    )
    tools = _Tools(service, caller_of)
    for tool, hints in (
        (tools.research_start, _ASKS),
        (tools.research_status, _READS),
        (tools.research, _ASKS),
        (tools.ask, _ASKS),
        (tools.research_cancel, _ENDS),
        (tools.search_runs, _READS),
        (tools.verify_claim, _READS),
        (tools.read_report, _READS),
    ):
        server.add_tool(tool, annotations=hints)
    server.resource(
        "fathom://settings",
        title="Settings",
        description="The JSON schema of the settings that a run may be given.",
        mime_type="application/json",
    )(settings)
    server.resource(
        "fathom://runs/{run_id}/report.md",
        title="Report",
        description="The whole report of a run in Markdown. It may be long: read_report has it in sections.",
        mime_type="text/markdown",
    )(tools.report)
    return server


async def settings() -> str:
    """Return the JSON schema of the settings of a run."""
    return json.dumps(settings_schema())


class _Tools:
    """The tools. Their docstrings are what a model reads."""

    def __init__(self, service: RunService, caller_of: Callable[[Context], Caller]) -> None:
        self._service = service
        self._caller_of = caller_of

    @_said
    async def research_start(
        self,
        question: Question,
        ctx: Context,
        profile: Profile = None,
        max_usd: MaxUsd = None,
        settings: Settings = None,
    ) -> Started:
        """Start to research a question and return at once: research_status tells what becomes of it."""
        run = await self._start(ctx, question, _settings(profile, max_usd, settings))
        return Started(
            run_id=run.id, state=run.state, notices=run.notices, next="Call research_status with wait_seconds=50."
        )

    @_said
    async def research_status(self, run_id: RunId, ctx: Context, wait_seconds: Wait = 0) -> Status:
        """Say where a run stands: its latest steps, and the answer once it has ended. It can wait for that."""
        caller = self._caller_of(ctx)
        run = await self._service.read(caller, run_id)
        seconds = 1 if run.state.ended else max(wait_seconds, 1)
        return await self._status(caller, run_id, await self._follow(ctx, caller, run, seconds))

    @_said
    async def research(
        self,
        question: Question,
        ctx: Context,
        profile: Profile = None,
        max_usd: MaxUsd = None,
        settings: Settings = None,
    ) -> Status:
        """Research a question and wait for the answer, for clients that show progress.

        Without a progress token in the request it waits for 50 seconds; then call research_status with the run_id.
        """
        run = await self._start(ctx, question, _settings(profile, max_usd, settings))
        return await self._ended(ctx, run)

    @_said
    async def ask(
        self, run_id: RunId, question: Question, ctx: Context, profile: Profile = None, max_usd: MaxUsd = None
    ) -> Status:
        """Ask a question that follows up on a finished run, which knows what that has read. Waits as research does."""
        request = FollowUpRequest(question=question, settings=_settings(profile, max_usd, None))
        return await self._ended(ctx, await (await self._open(ctx, run_id)).ask(request))

    @_said
    async def research_cancel(self, run_id: RunId, ctx: Context) -> Cancelled:
        """End a run without a report. What it has read is kept. A run that has ended stays as it is."""
        await (await self._open(ctx, run_id)).cancel()
        run = await (await self._open(ctx, run_id)).read()
        return Cancelled(run_id=run.id, state=run.state)

    @_said
    async def search_runs(
        self,
        ctx: Context,
        query: Annotated[str, Field(description="Words of the question; empty for the latest runs.")] = "",
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> FoundRuns:
        """List earlier runs, the newest first: what was researched before need not be researched again."""
        found = await self._service.latest(self._caller_of(ctx), RunFilter(words=query), limit=limit)
        return FoundRuns(
            runs=[FoundRun(run_id=r.id, question=r.question, state=r.state, created=r.created) for r in found.runs]
        )

    @_said
    async def verify_claim(
        self,
        run_id: RunId,
        ctx: Context,
        n: Annotated[int, Field(ge=0, description="The number of a claim of the report, from 1.")] = 0,
        text: Annotated[str, Field(max_length=2_000, description="Or a sentence, of the report or any other.")] = "",
    ) -> CheckedClaim:
        """Check a claim against the stored sources of a run: the verdict, and the words that support it."""
        return await check_claim(await self._open(ctx, run_id), n, text)

    @_said
    async def read_report(
        self,
        run_id: RunId,
        ctx: Context,
        section: Annotated[int, Field(ge=1, description="Its number; 1 is the answer.")] = 1,
        part: Annotated[int, Field(ge=1, description="Of a long section.")] = 1,
    ) -> Section:
        """Read a section of the report of a finished run, and the headings of all."""
        report = await (await self._open(ctx, run_id)).report_data()
        return section_of(run_id, report, section, part)

    async def report(self, run_id: str, ctx: Context) -> str:
        """Return a report as a resource."""
        try:
            return (await exported(await self._open(ctx, run_id), "md")).decode()
        except (RunNotFound, NoReport) as error:
            raise ResourceNotFoundError(str(error)) from error
        except FathomError as error:
            raise ResourceError(self.told(error, ctx)) from error
        except httpx.HTTPError as error:
            raise ResourceError(str(outage(error))) from error

    def told(self, error: FathomError, ctx: Context) -> str:
        """Return what the client of a request is told of a failure."""
        self._service.hide_store(error, self._caller_of(ctx))
        return str(error)

    async def _open(self, ctx: Context, run_id: str) -> RunHandle:
        return await self._service.open(self._caller_of(ctx), run_id)

    async def _start(self, ctx: Context, question: str, settings: dict[str, Any]) -> Run:
        return await self._service.start(self._caller_of(ctx), RunRequest(question=question, settings=settings))

    async def _ended(self, ctx: Context, run: Run) -> Status:
        hears = bool((ctx.request_context.meta or {}).get("progress_token") is not None)
        caller = self._caller_of(ctx)
        status = await self._status(caller, run.id, await self._follow(ctx, caller, run, None if hears else LONGEST))
        return status.model_copy(update={"notices": run.notices})

    async def _follow(self, ctx: Context, caller: Caller, run: Run, seconds: float | None) -> list[str]:
        """Follow a run to its end, or for some seconds, and return the latest lines."""
        lines = deque[str](maxlen=MOST_LINES)
        count = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                async for line in progress(self._service, caller, Begun(run)):
                    lines += [line] if line else []
                    count += 1
                    await ctx.report_progress(count, None, line or "still at work")
        return list(lines)

    async def _status(self, caller: Caller, run_id: str, happened: list[str]) -> Status:
        found = await self._service.open(caller, run_id)
        run = await found.read()
        status = Status(run_id=run.id, question=run.question, state=run.state, ended=run.state.ended, happened=happened)
        if run.state is RunState.waiting and run.asked:
            asks = (
                " ".join(question.question for question in run.asked.questions) or f"Is the {run.asked.matter} right?"
            )
            return status.model_copy(update={"asks": asks, "next": f"A person answers at {run.links.page}."})
        if not run.state.ended:
            return status.model_copy(update={"next": "Call research_status with wait_seconds=50."})
        if not (run.result and run.result.report):
            return status.model_copy(update={"why_no_report": why_no_report(run)})
        answer = answer_of(await found.report_data())
        return status.model_copy(update={"answer": answer, "next": "read_report has the other sections."})


def _settings(profile: groups.Profile | None, max_usd: float | None, more: dict[str, Any] | None) -> dict[str, Any]:
    budget = {"budget": {"max_usd": max_usd}} if max_usd else {}
    return {**({"profile": profile.value} if profile else {}), **budget, **(more or {})}
