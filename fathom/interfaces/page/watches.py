"""*Watches*: questions that are researched again by a schedule, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import cast
from urllib.parse import quote

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from fathom.client.resources import WatchChange, WatchRequest
from fathom.config.groups import Profile
from fathom.config.settings import ResearchSettings
from fathom.errors import Conflict, UserError
from fathom.interfaces.dependencies import TheCaller, TheService
from fathom.interfaces.page.ask import read_by_itself
from fathom.interfaces.page.forms import FormValues, TheForm, Wrong, settings_of, text, texts
from fathom.interfaces.page.rendering import page
from fathom.interfaces.page.runs import EVERY
from fathom.service import watches
from fathom.service.caller import Caller
from fathom.service.runs import RunService

MOST = 100  # runs of a history
_SHOWN_APART = ("docs", "corpora", "fresh", "people")  # what a watch reads, and what each has

router = APIRouter(prefix="/watches", include_in_schema=False)


@router.get("")
async def list_watches(request: Request, service: TheService, caller: TheCaller, question: str = "") -> Response:
    """List the watched questions."""
    return await _list(request, service, caller, FormValues(question=question[:2_000]))


@router.post("")
async def add(request: Request, service: TheService, caller: TheCaller, form: TheForm) -> Response:
    """Watch a question."""
    given, reads = FormValues.of(form), texts(form, "corpora")
    try:
        wanted = WatchRequest(
            question=text(form, "question"),
            every=text(form, "every") or None,
            name=text(form, "name"),
            settings={**settings_of(form), **({"corpora": reads} if reads else {})},
        )
        made = await watches.add(service, caller, wanted)
    except ValidationError as error:
        wrong = Wrong.invalid(error)
    except UserError as error:
        wrong = Wrong.of(error, "name" if isinstance(error, Conflict) else "question")
    else:
        return RedirectResponse(f"/watches#{quote(made.name)}", HTTPStatus.SEE_OTHER)
    return await _list(request, service, caller, given, wrong, reads=reads)


@router.get("/{name}")
async def show(name: str, request: Request, service: TheService, caller: TheCaller) -> Response:
    """Show a watched question, and what each of its runs found to have changed."""
    found = await watches.one(service, caller, name)
    history = await watches.history(service, caller, name, MOST)
    corpora, gone = await service.corpora.named(caller, cast("list[str]", found.settings.get("corpora") or []))
    other = {name: value for name, value in found.settings.items() if name not in _SHOWN_APART and value}
    return page(request, "watch", watch=found, history=history.runs, corpora=corpora, gone=gone, settings=other)


@router.post("/{name}/run")
async def run(name: str, service: TheService, caller: TheCaller) -> Response:
    """Start a run now, and show it."""
    started = await watches.run(service, caller, name)
    return RedirectResponse(started.links.page, HTTPStatus.SEE_OTHER)


@router.post("/{name}/pause")
async def pause(name: str, service: TheService, caller: TheCaller) -> Response:
    """Start no more runs until it is resumed."""
    await watches.change(service, caller, name, WatchChange(state="paused"))
    return _back()


@router.post("/{name}/resume")
async def resume(name: str, service: TheService, caller: TheCaller) -> Response:
    """Run it by its schedule again."""
    await watches.change(service, caller, name, WatchChange(state="active"))
    return _back()


@router.post("/{name}/remove")
async def remove(name: str, service: TheService, caller: TheCaller) -> Response:
    """Watch the question no longer; its reports stay."""
    await watches.remove(service, caller, name)
    return _back()


def _back() -> Response:
    return RedirectResponse("/watches", HTTPStatus.SEE_OTHER)


async def _list(
    request: Request,
    service: RunService,
    caller: Caller,
    given: FormValues,
    wrong: Wrong | None = None,
    *,
    reads: Sequence[str] = (),
) -> Response:
    return page(
        request,
        "watches",
        watches=(await watches.everyone(service, caller)).watches,
        given=given,
        wrong=wrong,
        corpora=[one for one in (await service.corpora.list(caller)).corpora if not one.temporary],
        reads=reads,
        every=EVERY,
        profiles=[profile.value for profile in Profile],
        usual=ResearchSettings().profile.value,
        may_ask=caller.may_ask,
        **read_by_itself(service),
    )
