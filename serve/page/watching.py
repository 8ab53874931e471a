"""*Watches*: questions that are researched again by a schedule, and what changed."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from fathom.errors import UserError
from fathom.errors.serving import NotThere
from fathom.text.cleaning import clean_line
from flows import watches
from flows.comparing import runs_of
from flows.preflight import check_request, settings_from
from serve.access.caller import Caller, Role
from serve.page.forms import Given, Wrong, settings_of, text
from serve.page.rendering import page
from serve.state import TheCaller, TheDesk

_ACTIONS = {"pause": watches.pause, "resume": watches.resume, "remove": watches.remove}
_EVERY = (("1h", "every hour"), ("1d", "every day"), ("1w", "every week"))

router = APIRouter(include_in_schema=False)


@router.get("/watches")
async def list_watches(request: Request, caller: TheCaller, question: str = "") -> Response:
    """List the watched questions."""
    return await _watches(request, caller, Given(question=question[:2_000]))


@router.post("/watches")
async def add_watch(request: Request, desk: TheDesk, caller: TheCaller) -> Response:
    """Watch a question."""
    caller.check(Role.asker)
    async with request.form() as form:
        given = Given.of(form)
        try:
            settings = settings_from({**settings_of(form), "artifacts": desk.options.artifacts})
            schedule = watches.schedule_of(text(form, "every") or None, text(form, "cron") or None, "UTC")
            checked = await asyncio.to_thread(check_request, text(form, "question"), settings)
            name = watches.name_of(text(form, "name") or checked.query)
            await watches.add(name, checked.query, checked.settings, schedule)
        except UserError as error:
            field = "schedule" if "schedule" in error.message or "--every" in error.message else "question"
            return await _watches(request, caller, given, Wrong.of(error, field))
    return RedirectResponse(f"/watches#{name}", HTTPStatus.SEE_OTHER)


@router.get("/watches/{name}")
async def watch(name: str, request: Request, desk: TheDesk, caller: TheCaller) -> Response:
    """Show a watched question, and what each of its runs found to have changed."""
    found = await _find(name, caller)
    history = [
        run
        for run in await runs_of(desk.store, found.name)
        if (await desk.owners.of(run.run_id, [])).readable_by(caller)
    ]
    return page(request, "watch", watch=found, history=history)


@router.post("/watches/{name}/{action}")
async def change_watch(name: str, action: str, caller: TheCaller) -> Response:
    """Pause, resume or remove a watched question."""
    caller.check(Role.asker)
    found = await _find(name, caller)
    if action not in _ACTIONS:
        raise NotThere(f"There is nothing to do that is called {clean_line(action)[:40]!r}.")
    await _ACTIONS[action](found)
    return RedirectResponse("/watches", HTTPStatus.SEE_OTHER)


async def _find(name: str, _caller: Caller) -> watches.Watch:
    found = next((watch for watch in await watches.all_watches() if watch.name == name), None)
    if found is None:
        raise NotThere(f"There is no watch {clean_line(name)[:60]!r}.")
    return found


async def _watches(request: Request, caller: Caller, given: Given, wrong: Wrong | None = None) -> Response:
    return page(
        request,
        "watches",
        HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK,
        watches=await watches.all_watches(),
        given=given,
        wrong=wrong or Wrong(),
        every=_EVERY,
        may_ask=caller.role.covers(Role.asker),
    )
