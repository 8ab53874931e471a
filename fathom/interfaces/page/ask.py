"""*Ask*: the question, how to research it, and what it will take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from pathlib import PurePath
from statistics import median
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from fathom.budget.prices import Pricing, Rates
from fathom.client.shapes import CorpusSummary, RunSummary
from fathom.config.environment import Environment
from fathom.config.form import limits_of
from fathom.config.groups import ABOUT, EXTRACTIVE, AccessScope, Profile
from fathom.config.inputs import check_query
from fathom.config.settings import SETTINGS, ResearchSettings, scope_of
from fathom.config.templates import shipped, template_of
from fathom.errors import InvalidInput, UserError
from fathom.interfaces.dependencies import TheCaller, TheService
from fathom.interfaces.page.forms import FormValues, Wrong, run_request, text, texts
from fathom.interfaces.page.rendering import page
from fathom.interfaces.uploads import Uploaded, has_files, upload_form
from fathom.models import RunState
from fathom.models.run import PhaseCost
from fathom.service.caller import AccessRole, Caller
from fathom.service.run_list import EVERYTHING
from fathom.service.runs import RunService
from fathom.service.status import searched_by_itself, whole_estimate
from fathom.storage.editions import StorageLimits

RECENT = 6
_SHOWN = 8  # corpora
LONGEST = 10_000
SOME = "What is known about this, and what is disputed?"
"""Stands for a question that nobody has typed yet."""

_USUAL = ResearchSettings()

router = APIRouter(include_in_schema=False)


class OfferedModel(NamedTuple):
    """A model as the page offers it: `rates` in dollars a token, and the `whole` run; None where unknown."""

    name: str
    rates: Rates | None
    whole: PhaseCost | None


class OfferedProfile(NamedTuple):
    """A profile as the page offers it; `whole` is what it would take, None if that cannot be told."""

    profile: Profile
    about: str
    whole: PhaseCost | None


@router.get("/")
async def ask(request: Request, service: TheService, caller: TheCaller) -> Response:
    """Show the form; `?question=` and the names of other fields fill it in."""
    given = FormValues({name: value[:LONGEST] for name, value in request.query_params.items()})
    return await _form(request, service, caller, given, reads=request.query_params.getlist("corpora"))


@router.post("/")
async def start(request: Request, service: TheService, caller: TheCaller) -> Response:
    """Start a run and show it; if it cannot be researched, show the form again and say why."""
    caller.check(AccessRole.asker)
    given, reads, about = FormValues(), list[str](), "files"
    try:
        async with _sent(request, service.corpora.corpora.limits) as (form, files):
            given, reads = FormValues.of(form), texts(form, "corpora")
            wanted = run_request(form)
            if files:  # a corpus of the run; where it cannot be started, the form is shown again with the corpus chosen
                made = await service.corpora.create_for_run(caller, files, temporary=bool(text(form, "discard")))
                reads.append(made)
                wanted = wanted.model_copy(update={"corpora": reads})
            about = "question"
            run = await service.start(caller, wanted, text(form, "key"))
    except ValidationError as error:
        wrong = Wrong.invalid(error)
    except UserError as error:
        wrong = Wrong.of(error, about)
    else:
        return RedirectResponse(run.links.page, HTTPStatus.SEE_OTHER)
    return await _form(request, service, caller, given, reads=reads, wrong=wrong)


@router.get("/offers")
async def offers(request: Request, service: TheService, caller: TheCaller) -> Response:
    """Return profiles and models with what a question would take: the parts of the form that change as one types."""
    caller.check(AccessRole.asker)
    given = FormValues({name: value[:2_000] for name, value in request.query_params.items()})
    return page(request, "offers", **await _offers(given, _names(service, caller, given["model"])), given=given)


@asynccontextmanager
async def _sent(request: Request, limits: StorageLimits) -> AsyncIterator[tuple[FormData, Sequence[Uploaded]]]:
    """Read a form that may have files."""
    if has_files(request.headers):
        async with upload_form(request, limits) as sent:
            yield sent.data, sent.files
    else:
        async with request.form() as form:
            yield form, []


async def _form(
    request: Request,
    service: RunService,
    caller: Caller,
    given: FormValues,
    *,
    reads: list[str],
    wrong: Wrong | None = None,
) -> Response:
    offered, recent, corpora = await asyncio.gather(
        _offers(given, _names(service, caller, given["model"])),
        service.listing.threads(caller, EVERYTHING, RECENT),
        service.corpora.list(caller),
    )
    own = read_by_itself(service)
    pinned = own["pinned"]
    return page(
        request,
        "ask",
        given=given,
        wrong=wrong,
        **offered,
        depth=limits_of(SETTINGS["depth"]),
        templates=[template_of(name) for name in shipped()],
        scopes=[one for one in AccessScope if one is not pinned and (not pinned or pinned.admits(one))],
        recent=recent.threads,
        lasted=_lasted(run for thread in recent.threads for run in thread.runs),
        corpora=_offered_corpora(corpora.corpora, reads),
        limits=corpora.limits,
        reads=reads,
        may_ask=caller.may_ask,
        **own,
    )


def read_by_itself(service: RunService) -> dict[str, Any]:
    """Return what a form says of questions that name no documents: what they search, and the scope of all runs."""
    return {
        "docs": [PurePath(path).name for path in service.options.docs],
        "searched": searched_by_itself(service),
        "pinned": scope_of(_USUAL, Environment.read()),
    }


def _lasted(runs: Iterable[RunSummary]) -> float | None:
    """Return the seconds that some runs usually took from question to report; None if none of them has one."""
    reported = [run for run in runs if run.state in (RunState.complete, RunState.degraded)]
    took = [datetime.fromisoformat(run.ended) - datetime.fromisoformat(run.created) for run in reported if run.ended]
    return median(one.total_seconds() for one in took) if took else None


def _offered_corpora(found: Sequence[CorpusSummary], reads: Collection[str]) -> Sequence[CorpusSummary]:
    """Return the corpora that the form offers, the chosen ones first; one that was made for a run only if chosen."""
    offered = [one for one in found if one.name in reads or not one.temporary]
    return sorted(offered, key=lambda one: one.name not in reads)[: max(_SHOWN, len(reads))]


def _names(service: RunService, caller: Caller, chosen: str) -> list[str]:
    """Return the models that are configured, the usual one first, and the one that an administrator has chosen."""
    usual = Environment.read().model or EXTRACTIVE
    return list(
        dict.fromkeys([usual, *service.options.models, EXTRACTIVE, *([chosen] if caller.is_admin and chosen else [])])
    )


async def _offers(given: FormValues, names: Sequence[str]) -> dict[str, Any]:
    question, template = _estimable(given["question"]), given["template"]
    chosen, model = given["profile"] or _USUAL.profile.value, given["model"] if given["model"] in names else names[0]

    def offered() -> dict[str, Any]:
        profiles = [
            OfferedProfile(one, about, _estimated(question, template, model, one)) for one, about in ABOUT.items()
        ]
        prices = Pricing({})
        models = [
            OfferedModel(name, prices.highest(name), _estimated(question, template, name, chosen)) for name in names
        ]
        return {"offers": profiles, "models": models, "chosen": chosen, "model": model}

    return await asyncio.to_thread(offered)


def _estimable(text: str) -> str:
    """Return a question as far as it is needed to tell what it takes, or one in place of what asks for nothing."""
    try:
        return check_query(" ".join(text[:2_000].split()))
    except InvalidInput:
        return SOME


@lru_cache(maxsize=512)
def _estimated(question: str, template: str, model: str, profile: str) -> PhaseCost | None:
    return whole_estimate(question, {"profile": profile, "template": template or None, "model": model})
