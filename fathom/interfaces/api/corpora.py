"""Corpora: files that people upload for runs to read."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from fathom.client.shapes import Corpus, CorpusChange, CorpusList
from fathom.errors import InvalidInput
from fathom.interfaces.dependencies import TheCaller, TheService
from fathom.interfaces.uploads import upload_form
from fathom.service.caller import AccessRole

router = APIRouter(prefix="/api/v1/corpora", tags=["corpora"])
_FILES = {"type": "array", "items": {"type": "string", "format": "binary"}, "description": "The files."}
_TRUE = ("true", "1", "on", "yes")


def _form(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {**properties, "files": _FILES}, "required": [*required, "files"]}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


_NEW = _form(
    {
        "name": {"type": "string", "maxLength": 60, "examples": ["handbook"]},
        "shared": {"type": "boolean", "default": False, "description": "Whether everybody may read it."},
    },
    ["name"],
)


@router.get("")
async def list_corpora(service: TheService, caller: TheCaller) -> CorpusList:
    """List the corpora that you may read."""
    return await service.corpora.list(caller)


@router.post("", status_code=HTTPStatus.CREATED, openapi_extra=_NEW)
async def create_corpus(request: Request, response: Response, service: TheService, caller: TheCaller) -> Corpus:
    """Make a corpus of uploaded files."""
    caller.check(AccessRole.asker)
    async with upload_form(request, service.corpora.corpora.limits) as form:
        if "name" not in form.fields:
            raise InvalidInput("The corpus has no name.", next_step="send a field `name`")
        shared = form.fields.get("shared", "").lower() in _TRUE
        made = await service.corpora.create(caller, form.fields["name"], form.files, shared=shared)
    response.headers["Location"] = f"{router.prefix}/{quote(made.name)}"
    return made


@router.get("/{name}")
async def read_corpus(name: str, service: TheService, caller: TheCaller) -> Corpus:
    """Return a corpus: its files, and which of them cannot be read."""
    return await service.corpora.read(caller, name)


@router.patch("/{name}")
async def change_corpus(name: str, change: CorpusChange, service: TheService, caller: TheCaller) -> Corpus:
    """Share a corpus with everybody who may read, or no longer."""
    return await service.corpora.share(caller, name, shared=change.shared)


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT)
async def remove_corpus(name: str, service: TheService, caller: TheCaller) -> None:
    """Remove a corpus. Runs that have begun to read it go on."""
    await service.corpora.remove(caller, name)


@router.put("/{name}/files", openapi_extra=_form({}, []))
async def add_files(name: str, request: Request, service: TheService, caller: TheCaller) -> Corpus:
    """Add files to a corpus; one replaces the file of the same name."""
    await service.corpora.check_owner(caller, name)
    async with upload_form(request, service.corpora.corpora.limits) as form:
        return await service.corpora.add(caller, name, form.files)


@router.delete("/{name}/files")
async def remove_file(name: str, file: str, service: TheService, caller: TheCaller) -> Corpus:
    """Remove the file of a name, given as the parameter `file`, from a corpus."""
    return await service.corpora.remove_file(caller, name, file)
