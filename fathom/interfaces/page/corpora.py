"""*Corpora*: documents that people upload for runs to read."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from fathom.errors import UserError
from fathom.interfaces.dependencies import TheCaller, TheService
from fathom.interfaces.page.forms import FormValues, TheForm, Wrong, text
from fathom.interfaces.page.rendering import page
from fathom.interfaces.uploads import upload_form
from fathom.service.caller import AccessRole, Caller
from fathom.service.runs import RunService

router = APIRouter(prefix="/corpora", include_in_schema=False)


@router.get("")
async def list_corpora(request: Request, service: TheService, caller: TheCaller) -> Response:
    """List the corpora that the caller may read."""
    return await _list(request, service, caller, FormValues())


@router.post("")
async def create(request: Request, service: TheService, caller: TheCaller) -> Response:
    """Make a corpus of uploaded files."""
    caller.check(AccessRole.asker)
    given = FormValues()
    try:
        async with upload_form(request, service.corpora.corpora.limits) as form:
            given = FormValues(form.fields)
            name = text(given, "name")
            await service.corpora.create(caller, name, form.files, shared=bool(given["shared"]))
    except UserError as error:
        field = "name" if "name" in error.message and "file" not in error.message else "files"
        return await _list(request, service, caller, given, Wrong.of(error, field))
    return _to(name)


@router.get("/{name}")
async def read(name: str, request: Request, service: TheService, caller: TheCaller) -> Response:
    """Show a corpus: its files, and which of them cannot be read."""
    return await _read(name, request, service, caller)


@router.post("/{name}/files")
async def add(name: str, request: Request, service: TheService, caller: TheCaller) -> Response:
    """Add files to a corpus."""
    await service.corpora.check_owner(caller, name)
    try:
        async with upload_form(request, service.corpora.corpora.limits) as form:
            await service.corpora.add(caller, name, form.files)
    except UserError as error:
        return await _read(name, request, service, caller, Wrong.of(error, "files"))
    return _to(name)


@router.post("/{name}/files/remove")
async def remove_file(name: str, form: TheForm, service: TheService, caller: TheCaller) -> Response:
    """Remove a file of a corpus."""
    await service.corpora.remove_file(caller, name, text(form, "file"))
    return _to(name)


@router.post("/{name}/share")
async def share(name: str, form: TheForm, service: TheService, caller: TheCaller) -> Response:
    """Let everybody who may read read a corpus, or no longer."""
    await service.corpora.share(caller, name, shared=bool(text(form, "shared")))
    return _to(name)


@router.post("/{name}/remove")
async def remove(name: str, service: TheService, caller: TheCaller) -> Response:
    """Remove a corpus."""
    await service.corpora.remove(caller, name)
    return RedirectResponse("/corpora", HTTPStatus.SEE_OTHER)


async def _list(
    request: Request, service: RunService, caller: Caller, given: FormValues, wrong: Wrong | None = None
) -> Response:
    return page(
        request, "corpora", found=await service.corpora.list(caller), given=given, wrong=wrong, may_ask=caller.may_ask
    )


async def _read(
    name: str, request: Request, service: RunService, caller: Caller, wrong: Wrong | None = None
) -> Response:
    corpus = await service.corpora.read(caller, name)
    return page(request, "corpus", corpus=corpus, wrong=wrong, own=caller.may_change(corpus.owner))


def _to(name: str) -> Response:
    return RedirectResponse(f"/corpora/{quote(name, safe='')}", HTTPStatus.SEE_OTHER)
