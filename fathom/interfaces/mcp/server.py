"""The tools and resources of the MCP server. Loads the package `mcp`: import it late.

A tool that waits does not wait long unless the client shows that it hears of progress: clients give up after a minute,
and a client that gives up must still have the id of the run. So giving up, or cancelling a call, does not end the run.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import wraps
from importlib.metadata import version
from typing import Annotated, Any

import httpx
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import ConfigDict, Field, model_validator

from fathom.client.resources import TemplateList
from fathom.client.shapes import FollowUpRequest, Run, RunRequest
from fathom.config import groups
from fathom.config.settings import SETTINGS
from fathom.config.templates import meant
from fathom.errors import FathomError, NoReport, RunNotFound
from fathom.interfaces.mcp.reports import (
    Cancelled,
    CheckedClaim,
    FoundCorpora,
    FoundCorpus,
    FoundRun,
    FoundRuns,
    RunStatus,
    Section,
    Started,
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
from fathom.service.runs import OF_THE_SERVER, RunHandle, RunService
from fathom.service.status import settings_schema, templates

LONGEST = 50.0
"""Seconds that a call may last without progress: clients give up after 60."""
MOST_LINES = 10
INSTRUCTIONS = (
    "Fathom researches a question and writes a report in which every claim cites stored evidence. A run takes from "
    "seconds to many minutes. Start one with research_start, call research_status until `ended` is true, then read the "
    "answer, and sections with read_report where the answer is not enough. Cite sources by their addresses. Without "
    "corpora or docs a run searches the web, or only what the operator has set up: its notices say which."
)
Question = Annotated[str, Field(min_length=1, max_length=10_000, description="A whole question, understood by itself.")]
RunId = Annotated[str, Field(description="The run_id that a tool returned.")]
Profile = Annotated[
    groups.Profile | None,
    Field(description=f"{SETTINGS['profile'].description} Default: {SETTINGS['profile'].default}."),
]
MaxUsd = Annotated[float | None, Field(gt=0, description=SETTINGS["budget.max_usd"].description)]
Corpora = Annotated[list[str], Field(max_length=20, description=f"{SETTINGS['corpora'].description} See list_corpora.")]
Docs = Annotated[
    list[str], Field(description="Files or folders of the server to read; only for whoever the operator allows it.")
]
Scope = Annotated[groups.AccessScope | None, Field(description=SETTINGS["scope"].description)]
Template = Annotated[str | None, Field(description="The kind of research, as list_templates names it.")]
_MORE = dict.fromkeys(path.partition(".")[0] for path in SETTINGS if path not in OF_THE_SERVER)
Settings = Annotated[
    dict[str, Any] | None,
    Field(description=f"More settings; the resource fathom://settings describes them: {', '.join(_MORE)}."),
]
Wait = Annotated[
    float, Field(ge=0, le=LONGEST, description="Seconds to wait for the end of the run; 0 answers at once.")
]
_NONE: list[str] = []
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ASKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
_ENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


def create_server(service: RunService, caller_of: Callable[[Context], Caller]) -> MCPServer[Any]:
    """Return an MCP server whose tools do what somebody may with the runs of a service."""
    offered = (
        (_Call.research_start, _ASKS),
        (_Call.research_status, _READS),
        (_Call.research, _ASKS),
        (_Call.ask, _ASKS),
        (_Call.research_cancel, _ENDS),
        (_Call.search_runs, _READS),
        (_Call.verify_claim, _READS),
        (_Call.read_report, _READS),
        (_Call.list_corpora, _READS),
        (_Call.list_templates, _READS),
    )

    async def report(run_id: str, context: Context) -> str:
        try:
            return (await exported(await service.open(caller_of(context), run_id), "md")).decode()
        except (RunNotFound, NoReport) as error:
            raise ResourceNotFoundError(str(error)) from error
        except FathomError as error:
            service.hide_paths(error, caller_of(context))
            raise ResourceError(str(error)) from error
        except httpx.HTTPError as error:
            raise ResourceError(str(outage(error))) from error

    server: MCPServer[Any] = MCPServer(
        "fathom",
        title="Fathom",
        instructions=INSTRUCTIONS,
        version=version("fathom-research"),
        log_level="ERROR",
        tools=[_tool(tool, hints, service, caller_of) for tool, hints in offered],
    )
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
    )(report)
    return server


def _tool(
    tool: Callable[..., Awaitable[Any]],
    hints: ToolAnnotations,
    service: RunService,
    caller_of: Callable[[Context], Caller],
) -> Tool:
    """Return a tool that tells the client what failed: of other errors it learns nothing."""

    @wraps(tool)
    async def call(*, self: Context, **arguments: Any) -> Any:
        caller = caller_of(self)
        try:
            return await tool(_Call(service, caller, self), **arguments)
        except FathomError as error:
            service.hide_paths(error, caller)
            raise ToolError(str(error)) from error
        except httpx.HTTPError as error:
            raise ToolError(str(outage(error))) from error

    # The package passes a call's context where a method expects its object.
    return _strict(Tool.from_function(call, context_kwarg="self", annotations=hints))


def _strict(tool: Tool) -> Tool:
    """Have a tool refuse arguments that it does not have, which the package leaves out without a word."""
    known = tool.parameters["properties"]

    class Strict(tool.fn_metadata.arg_model):  # type: ignore[misc,name-defined]  # the package makes it of the function
        model_config = ConfigDict(extra="forbid", title=tool.name)

        @model_validator(mode="before")
        @classmethod
        def check_names(cls, given: dict[str, Any]) -> dict[str, Any]:
            """Name what is unknown, and what was meant."""
            settings = {name: f"settings.{name}" for name in _MORE} if "settings" in known else {}
            unknown = [
                f"{name!r}{meant(name, settings | {each: each for each in known})}" for name in {*given} - {*known}
            ]
            if unknown:
                raise ValueError(f"no such argument: {', '.join(unknown)}. {tool.name} takes {', '.join(known)}.")
            return given

    tool.fn_metadata.arg_model = Strict
    tool.parameters = Strict.model_json_schema(by_alias=True)
    return tool


async def settings() -> str:
    """Return the JSON schema of the settings of a run."""
    return json.dumps(settings_schema())


class _Call:
    """A call of a tool. The docstrings of the tools are what a model reads."""

    def __init__(self, service: RunService, caller: Caller, context: Context) -> None:
        self._service = service
        self._caller = caller
        self._context = context

    async def research_start(
        self,
        question: Question,
        *,
        corpora: Corpora = _NONE,
        docs: Docs = _NONE,
        scope: Scope = None,
        template: Template = None,
        profile: Profile = None,
        max_usd: MaxUsd = None,
        settings: Settings = None,
    ) -> Started:
        """Start to research a question and return at once: research_status tells what becomes of it."""
        given = _settings(profile, max_usd, settings, docs, scope)
        run = await self._start(question, given, template, corpora)
        return Started(
            run_id=run.id, state=run.state, notices=run.notices, next="Call research_status with wait_seconds=50."
        )

    async def research_status(self, run_id: RunId, wait_seconds: Wait = 0) -> RunStatus:
        """Say where a run stands: its latest steps, and the answer once it has ended. It can wait for that."""
        run = await self._service.read(self._caller, run_id)
        seconds = 1 if run.state.ended else max(wait_seconds, 1)
        return await self._status(run_id, await self._follow(run, seconds))

    async def research(
        self,
        question: Question,
        *,
        corpora: Corpora = _NONE,
        docs: Docs = _NONE,
        scope: Scope = None,
        template: Template = None,
        profile: Profile = None,
        max_usd: MaxUsd = None,
        settings: Settings = None,
    ) -> RunStatus:
        """Research a question and wait for the answer, for clients that show progress.

        Without a progress token in the request it waits for 50 seconds; then call research_status with the run_id.
        """
        given = _settings(profile, max_usd, settings, docs, scope)
        return await self._ended(await self._start(question, given, template, corpora))

    async def ask(
        self,
        run_id: RunId,
        question: Question,
        *,
        profile: Profile = None,
        max_usd: MaxUsd = None,
        settings: Settings = None,
    ) -> RunStatus:
        """Ask a question that follows up on a finished run, which knows what that has read. Waits as research does.

        It reads what the earlier run could read, unless settings say otherwise.
        """
        request = FollowUpRequest(question=question, settings=_settings(profile, max_usd, settings))
        return await self._ended(await (await self._open(run_id)).ask(request))

    async def research_cancel(self, run_id: RunId) -> Cancelled:
        """End a run without a report. What it has read is kept. A run that has ended stays as it is."""
        await (await self._open(run_id)).cancel()
        run = await self._service.read(self._caller, run_id)
        return Cancelled(run_id=run.id, state=run.state)

    async def search_runs(
        self,
        query: Annotated[str, Field(description="Words of the question; empty for the latest runs.")] = "",
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> FoundRuns:
        """List earlier runs, the newest first: what was researched before need not be researched again."""
        found = await self._service.latest(self._caller, RunFilter(words=query), limit=limit)
        shown = {*FoundRun.model_fields}
        return FoundRuns(runs=[FoundRun(run_id=run.id, **run.model_dump(include=shown)) for run in found.runs])

    async def verify_claim(
        self,
        run_id: RunId,
        n: Annotated[int, Field(ge=0, description="The number of a claim of the report, from 1.")] = 0,
        text: Annotated[str, Field(max_length=2_000, description="Or a sentence, of the report or any other.")] = "",
    ) -> CheckedClaim:
        """Check a claim against the stored sources of a run: the verdict, and the words that support it."""
        return await check_claim(await self._open(run_id), n, text)

    async def read_report(
        self,
        run_id: RunId,
        section: Annotated[int, Field(ge=1, description="Its number; 1 is the answer.")] = 1,
        part: Annotated[int, Field(ge=1, description="Of a long section.")] = 1,
    ) -> Section:
        """Read a section of the report of a finished run, and the headings of all."""
        report = await (await self._open(run_id)).report_data()
        return section_of(run_id, report, section, part)

    async def list_corpora(self) -> FoundCorpora:
        """List the corpora that a run may read: files that people uploaded."""
        found = (await self._service.corpora.list(self._caller)).corpora
        return FoundCorpora(
            corpora=[FoundCorpus(**one.model_dump(include={*FoundCorpus.model_fields})) for one in found]
        )

    async def list_templates(self) -> TemplateList:
        """List the kinds of research that there are templates for."""
        return templates()

    async def _open(self, run_id: str) -> RunHandle:
        return await self._service.open(self._caller, run_id)

    async def _start(self, question: str, settings: dict[str, Any], template: str | None, corpora: list[str]) -> Run:
        request = RunRequest(question=question, settings=settings, template=template, corpora=corpora)
        return await self._service.start(self._caller, request)

    async def _ended(self, run: Run) -> RunStatus:
        hears = (self._context.request_context.meta or {}).get("progress_token") is not None
        status = await self._status(run.id, await self._follow(run, None if hears else LONGEST))
        return status.model_copy(update={"notices": run.notices})

    async def _follow(self, run: Run, seconds: float | None) -> list[str]:
        """Follow a run to its end, or for some seconds, and return the latest lines."""
        lines = deque[str](maxlen=MOST_LINES)
        count = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                async for line in progress(self._service, self._caller, Begun(run)):
                    lines += [line] if line else []
                    count += 1
                    await self._context.report_progress(count, None, line or "still at work")
        return list(lines)

    async def _status(self, run_id: str, happened: list[str]) -> RunStatus:
        found = await self._open(run_id)
        run = await found.read()
        status = RunStatus(
            run_id=run.id, question=run.question, state=run.state, ended=run.state.ended, happened=happened
        )
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


def _settings(
    profile: groups.Profile | None,
    max_usd: float | None,
    more: dict[str, Any] | None,
    docs: Sequence[str] = (),
    scope: groups.AccessScope | None = None,
) -> dict[str, Any]:
    budget = {"max_usd": max_usd} if max_usd else None
    named = {"profile": profile, "docs": [*docs], "scope": scope, "budget": budget}
    return {**{name: value for name, value in named.items() if value}, **(more or {})}
