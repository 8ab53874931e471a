"""*Ask*: the question, how to research it, and what it will take."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from statistics import median
from typing import NamedTuple

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from fathom.client.shapes import RunSummary
from fathom.config.environment import Environment
from fathom.config.form import limits_of
from fathom.config.groups import ABOUT, Profile
from fathom.config.settings import SETTINGS, ResearchSettings
from fathom.config.templates import shipped, template_of
from fathom.errors import UserError
from fathom.interfaces.dependencies import TheCaller, TheService
from fathom.interfaces.page.forms import FormValues, Wrong, run_request, text
from fathom.interfaces.page.rendering import page
from fathom.models import RunState
from fathom.run.estimate import PhaseEstimate
from fathom.service.caller import Caller, Role
from fathom.service.runs import RunService
from fathom.service.status import searched_by_itself, whole_estimate

RECENT = 6
LONGEST = 10_000
SOME = "What is known about this, and what is disputed?"
"""Stands for the question that nobody has typed yet."""

_USUAL = ResearchSettings()

router = APIRouter(include_in_schema=False)


class OfferedProfile(NamedTuple):
    """A profile as the page offers it; `whole` is what it would take, None if that cannot be told."""

    profile: Profile
    about: str
    whole: PhaseEstimate | None


@router.get("/")
async def ask(request: Request, service: TheService, caller: TheCaller) -> Response:
    """Show the form; `?question=` and the names of other fields fill it in."""
    given = FormValues({name: value[:LONGEST] for name, value in request.query_params.items()})
    return await _form(request, service, caller, given, reads=request.query_params.getlist("corpora"))


@router.post("/")
async def start(request: Request, service: TheService, caller: TheCaller) -> Response:
    """Start a run and show it; if it cannot be researched, show the form again and say why."""
    async with request.form() as form:
        given, reads = FormValues.of(form), [one for one in form.getlist("corpora") if isinstance(one, str)]
        try:
            run = await service.start(caller, run_request(form), text(form, "key"))
        except ValidationError as error:
            wrong = Wrong.invalid(error)
        except UserError as error:
            wrong = Wrong.of(error, "question")
        else:
            return RedirectResponse(run.links.page, HTTPStatus.SEE_OTHER)
    return await _form(request, service, caller, given, reads=reads, wrong=wrong)


@router.get("/offers")
async def offers(request: Request, caller: TheCaller, question: str = "", template: str = "") -> Response:
    """Return the profiles with what each would take for a question: the part of the form that changes as one types."""
    caller.check(Role.asker)
    chosen = request.query_params.get("profile") or _USUAL.profile
    return page(request, "_offers", offers=await _offers(question[:2_000], template), chosen=chosen)


async def _form(
    request: Request,
    service: RunService,
    caller: Caller,
    given: FormValues,
    *,
    reads: list[str],
    wrong: Wrong | None = None,
) -> Response:
    found, recent, corpora = await asyncio.gather(
        _offers(given["question"], given["template"]),
        service.latest(caller, limit=RECENT),
        service.corpora.list(caller),
    )
    return page(
        request,
        "ask",
        HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK,
        given=given,
        wrong=wrong or Wrong(),
        offers=found,
        chosen=given["profile"] or _USUAL.profile,
        depth=limits_of(SETTINGS["depth"]),
        templates=[template_of(name) for name in shipped()],
        recent=recent.runs,
        lasted=_lasted(recent.runs),
        corpora=corpora.corpora,
        reads=reads,
        may_ask=caller.may_ask,
        model=Environment.read().model,
        searched=searched_by_itself(),
    )


def _lasted(runs: Iterable[RunSummary]) -> float | None:
    """Return the seconds that some runs usually took from question to report; None if none of them has one."""
    reported = [run for run in runs if run.state in (RunState.complete, RunState.degraded)]
    took = [datetime.fromisoformat(run.ended) - datetime.fromisoformat(run.created) for run in reported if run.ended]
    return median(one.total_seconds() for one in took) if took else None


async def _offers(question: str, template: str) -> list[OfferedProfile]:
    return await asyncio.to_thread(_estimated, " ".join(question.split()) or SOME, template)


@lru_cache(maxsize=256)
def _estimated(question: str, template: str) -> list[OfferedProfile]:
    return [
        OfferedProfile(profile, about, whole_estimate(question, {"profile": profile, "template": template or None}))
        for profile, about in ABOUT.items()
    ]
