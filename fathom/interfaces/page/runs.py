"""*Runs*: listed, and one watched, answered, steered, and read when it has ended, by plain forms and links."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from fathom.client.shapes import (
    EventType,
    FollowUpRequest,
    RatingRequest,
    RemarkRequest,
    Run,
    RunEvent,
    RunList,
    ShareLink,
)
from fathom.errors import UserError
from fathom.interfaces.dependencies import TheCaller, TheRun, TheService
from fathom.interfaces.page.forms import PREFERENCES, FormValues, TheForm, Wrong, answer_request, text, texts
from fathom.interfaces.page.rendering import page
from fathom.models import Draft, Plan, Report, RunState, Source
from fathom.models.plan import StepStatus
from fathom.report.chapters import title_of
from fathom.run.checklist import MOST_STEPS
from fathom.service import reports, watches
from fathom.service.caller import Caller
from fathom.service.reports import answers
from fathom.service.reports import check as check_report
from fathom.service.run_list import RunFilter
from fathom.service.runs import RunHandle, RunService
from fathom.storage.steering import Steer, stop_among, waiting_among
from fathom.text.citations import without_citations

router = APIRouter(prefix="/runs", include_in_schema=False)
EVERY = (("1w", "every week"), ("1d", "every day"), ("1h", "every hour"))
"""How often a question can be watched, as the page offers it."""
_PAGE = 25
_MOST = 50  # runs that are listed below a report
_ROWS = 2  # empty ones for steps that a person adds to a plan


@router.get("")
async def list_runs(
    request: Request,
    service: TheService,
    caller: TheCaller,
    *,
    text: str = "",
    state: str = "",
    owner: str = "",
    cursor: str = "",
) -> Response:
    """List the runs by conversation: searched, filtered, page by page."""
    filters = {"text": text.strip()[:200], "state": state if state in list(RunState) else "", "owner": owner[:100]}
    states = frozenset({RunState(filters["state"])} if filters["state"] else ())
    wanted = RunFilter(states=states, words=filters["text"], owner=filters["owner"].strip() or None)
    found = await service.listing.threads(caller, wanted, _PAGE, cursor)
    more = urlencode({**{name: value for name, value in filters.items() if value}, "cursor": found.next or ""})
    return page(request, "runs", found=found, filters=filters, more=more, first=not cursor)


@router.get("/{run_id}")
async def watch(run: TheRun, request: Request, service: TheService, check: str = "") -> Response:
    """Show a run, as it goes on or as it ended; with `check`, check its report again."""
    return await _show(request, service, run, check=bool(check))


@router.post("/{run_id}/answer")
async def answer(run: TheRun, request: Request, service: TheService, form: TheForm) -> Response:
    """Answer what the run asks."""
    if (asked := (await run.read()).asked) is None:  # it was answered in the meantime
        return _back(run.run_id)
    given = FormValues.of(form)
    return await _done(request, service, run, lambda: run.answer(answer_request(form, asked)), "answer", given)


@router.post("/{run_id}/remarks")
async def tell(run: TheRun, request: Request, service: TheService, form: TheForm) -> Response:
    """Tell the run what else to look at."""
    given = FormValues(text=text(form, "text"))
    return await _done(
        request, service, run, lambda: run.steer(Steer.tell, RemarkRequest(text=given["text"]).text), "text", given
    )


@router.post("/{run_id}/take-back")
async def take_back(run: TheRun, request: Request, service: TheService, form: TheForm) -> Response:
    """Take a remark back that the run has not taken up yet."""
    return await _done(request, service, run, lambda: run.steer(Steer.back, text(form, "remark")), "text")


@router.post("/{run_id}/rate")
async def rate(run: TheRun, request: Request, service: TheService, form: TheForm) -> Response:
    """Rate the report: whether it was of use, and why."""
    good, given = text(form, "good") == "1", FormValues(note=text(form, "note"))
    return await _done(
        request, service, run, lambda: run.rate(RatingRequest(good=good, note=given["note"])), "note", given
    )


@router.post("/{run_id}/stop")
async def stop(run: TheRun, request: Request, service: TheService) -> Response:
    """End the research of the run and let it write with what there is."""
    return await _done(request, service, run, lambda: run.steer(Steer.stop), "stop")


@router.post("/{run_id}/cancel")
async def cancel(run: TheRun) -> Response:
    """End the run without a report."""
    await run.cancel()
    return _back(run.run_id)


@router.post("/{run_id}/resume")
async def resume(run: TheRun) -> Response:
    """Continue a run that stopped before its end; no finished call is repeated."""
    await run.resume()
    return _back(run.run_id)


@router.post("/{run_id}/share")
async def share(run: TheRun, request: Request, service: TheService, form: TheForm) -> Response:
    """Share the run with everybody who may read, with nobody, or by a link."""
    how = text(form, "with")
    if how in ("link", "public"):
        made = await run.link(public=how == "public")
        return await _show(request, service, run, link=made)
    await run.share(shared=how == "everybody")
    return _back(run.run_id)


@router.post("/{run_id}/watch")
async def watch_again(run: TheRun, request: Request, service: TheService, form: TheForm) -> Response:
    """Watch the question of the run, with all that it used."""
    try:
        made = await watches.add_of(service, run, text(form, "every"))
    except UserError as error:
        return await _show(request, service, run, wrong=Wrong.of(error, "watch"))
    return RedirectResponse(f"/watches#{quote(made.name)}", HTTPStatus.SEE_OTHER)


@router.post("/{run_id}/unlink")
async def unlink(run: TheRun, form: TheForm) -> Response:
    """Remove a link to the run."""
    await run.unlink(text(form, "link"))
    return _back(run.run_id)


@router.post("/{run_id}/rename")
async def rename(run: TheRun, form: TheForm) -> Response:
    """Give the run a name; with an empty one it is listed by its question again."""
    await run.rename(text(form, "title"))
    return _back(run.run_id)


@router.get("/{run_id}/remove")
async def ask_to_remove(run: TheRun, request: Request, service: TheService) -> Response:
    """Say what goes with the run or with its conversation, and ask whether it shall."""
    shown = await run.read()
    thread = [one.summary for one in await service.listing.thread_of(run.caller, run.run_id)]
    going = [one for one in thread if one.state.ended and run.caller.may_change(one.owner)]
    return page(request, "remove", run=shown, going=going, staying=[one for one in thread if one not in going])


@router.post("/{run_id}/remove")
async def remove(run: TheRun, service: TheService, form: TheForm) -> Response:
    """Remove the run, or those runs of its conversation that the form names."""
    for run_id in texts(form, "run") or [run.run_id]:
        await (await service.open(run.caller, run_id)).remove()
    return RedirectResponse(router.prefix, HTTPStatus.SEE_OTHER)


@router.post("/{run_id}/ask")
async def ask(run: TheRun, request: Request, service: TheService, form: TheForm) -> Response:
    """Ask a question that follows up on the run."""
    given = FormValues(question=text(form, "question"))
    try:
        started = await run.ask(FollowUpRequest(question=given["question"]), text(form, "key"))
    except (UserError, ValidationError) as error:
        return await _show(request, service, run, wrong=_wrong(error, "question"), given=given)
    return _back(started.id)


async def _done(  # noqa: PLR0917 - as the routes have them
    request: Request,
    service: RunService,
    run: RunHandle,
    do: Callable[[], Awaitable[object]],
    field: str,
    given: FormValues | None = None,
) -> Response:
    """Do something with the run and show it; where that cannot be done, say why at a field of what was filled in."""
    try:
        await do()
    except (UserError, ValidationError) as error:
        return await _show(request, service, run, wrong=_wrong(error, field), given=given)
    return _back(run.run_id)


async def _show(
    request: Request,
    service: RunService,
    handle: RunHandle,
    *,
    wrong: Wrong | None = None,
    given: FormValues | None = None,
    check: bool = False,
    link: ShareLink | None = None,
) -> Response:
    caller, run = handle.caller, await handle.read()
    report, log, around, ratings = await asyncio.gather(
        _report(handle, run), handle.log(), _around(service, run, caller), handle.ratings()
    )
    timeline, said = timeline_of(log), [] if run.state.ended else await handle.said()
    own = caller.may_change(run.owner)
    return page(
        request,
        "run",
        run=run,
        plan=run.plan if run.state.ended else timeline.plan(run.plan),
        over=run.state.ended,
        timeline=timeline,
        report=report,
        cited=_cited(report) if report else [],
        wrong=wrong,
        given=given or FormValues(),
        checked=await check_report(handle) if check and report else None,
        ratings=ratings,
        stopped=stop_among(said),
        waiting=waiting_among(said),
        every=EVERY,
        may_answer=caller.may_ask,
        own=own,
        by_worker=handle.found.by_worker,
        link=link,
        links=await handle.links() if own else [],
        public_links=service.options.public_links,
        rows=[*(run.asked.plan.steps if run.asked and run.asked.plan else []), *[None] * _ROWS][:MOST_STEPS],
        preferences=PREFERENCES,
        RunState=RunState,
        **around,
    )


async def _report(handle: RunHandle, run: Run) -> Report | None:
    return await handle.report_data() if run.result and run.result.report else None


def _cited(report: Report) -> list[tuple[str, Source, int]]:
    """Return each source that a report cites, in the order of their numbers: its title, and how many claims cite it."""
    uses = Counter(source_id for claim in report.claims for source_id in claim.source_ids)
    return [(title_of(source), source, uses[source.source_id]) for source in report.sources]


async def _around(service: RunService, run: Run, caller: Caller) -> dict[str, Any]:
    """Return what is shown around a run: what it reads, the rest of its conversation, its watches and their runs."""
    ended = run.state.ended
    corpora, gone = await service.corpora.named(caller, run.settings.get("corpora") or [])
    thread = await service.listing.thread_of(caller, run.id) if ended or run.parent else []
    earlier = [one for one in reversed(thread) if one.summary.created < run.created]
    watched = RunFilter(watch=run.watch or "")
    same = await service.latest(caller, watched, limit=_MOST) if ended and run.watch else RunList(runs=[])
    reported = run.result and run.result.report and not run.watch
    return {
        "corpora": corpora,
        "gone": gone,
        "thread": thread,
        "earlier": [
            (one.summary, said) for one, said in zip(earlier, await answers(service, caller, earlier), strict=True)
        ],
        "later": [one.summary for one in reversed(thread) if one.summary.id != run.id and one not in earlier],
        "history": [one for one in same.runs if one.id != run.id],
        "watching": await watches.watching(service, caller, run) if reported else [],
    }


def _wrong(error: UserError | ValidationError, field: str) -> Wrong:
    return Wrong.of(error, field) if isinstance(error, UserError) else Wrong.invalid(error)


def _back(run_id: str) -> Response:
    return RedirectResponse(f"{router.prefix}/{run_id}", HTTPStatus.SEE_OTHER)


_QUIET = ("llm_called",)
_ONLY_SEARCHED = "Only {}, is searched: the run has no documents, and no web search is set up."


@dataclass(frozen=True)
class TimelineEntry:
    """One thing that the page shows by itself, such as a note with its sources."""

    title: str
    at: str
    text: str = ""
    sources: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Timeline:
    """What has happened so far. `last`: the id of the last event."""

    last: int = 0
    notes: list[TimelineEntry] = field(default_factory=list)
    sections: list[Draft] = field(default_factory=list)  # in the order of the report
    remarks: list[TimelineEntry] = field(default_factory=list)
    warnings: list[TimelineEntry] = field(default_factory=list)
    steps: dict[str, StepStatus] = field(default_factory=dict)  # by their ids, as far as they have ended
    now: set[str] = field(default_factory=set)  # ids of those that have begun and not ended
    sources: int = 0
    log: list[RunEvent] = field(default_factory=list)

    def plan(self, plan: Plan | None) -> Plan | None:
        """Return a plan with the present status of each step: the stored plan has their status after the last round."""
        if plan is None:
            return None
        now = [
            step.model_copy(update={"status": self.steps.get(str(step.step_id), step.status)})
            if step.status is StepStatus.todo
            else step
            for step in plan.steps
        ]
        return plan.model_copy(update={"steps": now})


def timeline_of(events: Sequence[RunEvent]) -> Timeline:
    """Return what some events tell."""
    timeline = Timeline(last=events[-1].id if events else 0)
    known: dict[str, dict[str, Any]] = {}
    sections: dict[int, Draft] = {}  # by their places: one may be written again
    for event in events:
        data = event.data
        state = data.get("state")
        match event.type:
            case EventType.source_found:
                known.setdefault(str(data.get("source_id")), {"title": event.message, "url": str(data.get("url", ""))})
                continue
            case EventType.note_created:
                ids = data.get("source_ids")
                sources = [known[i] for i in ids if i in known] if isinstance(ids, list) else []
                timeline.notes.append(
                    TimelineEntry(
                        str(data.get("title", "")), event.at, _plain(str(data.get("summary", ""))), sources=sources
                    )
                )
            case EventType.section:
                with suppress(ValidationError):  # a line of another version
                    section = Draft.model_validate({name: data.get(name) for name in Draft.model_fields})
                    sections[section.position] = section
            case EventType.step_started:
                timeline.now.add(str(data.get("step_id")))
            case EventType.step_completed:
                timeline.steps[str(data.get("step_id"))] = StepStatus(str(data["status"]))
                timeline.now.discard(str(data.get("step_id")))
            case EventType.warning | EventType.error:
                timeline.warnings.append(TimelineEntry(event.message, event.at))
            case _ if state == "session_created" and "searched" in data:
                timeline.remarks.append(TimelineEntry(_ONLY_SEARCHED.format(data["searched"]), event.at))
            case _ if state == "steered":
                timeline.remarks.append(TimelineEntry(event.message, event.at))
        if state not in _QUIET and event.id:
            timeline.log.append(event)
    timeline.sources = len(known)
    timeline.sections = [sections[position] for position in sorted(sections)]
    return timeline


def _plain(text: str) -> str:
    return without_citations(text).replace(" .", ".").replace("*", "")


searching = APIRouter(prefix="/library", include_in_schema=False)
_HITS = 30


@searching.get("")
async def search(request: Request, service: TheService, caller: TheCaller, q: str = "") -> Response:
    """Search the runs that the caller may read."""
    query = q.strip()[:1_000]
    found = (await reports.search_library(service, caller, query, _HITS)).hits if query else []
    return page(request, "library", query=query, hits=found, may_ask=caller.may_ask)
