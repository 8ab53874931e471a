"""Batches: many questions, each in a run of its own."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import ValidationError

from fathom.batch.questions import Format
from fathom.client.resources import Batch, BatchCaps, BatchList, BatchRequest
from fathom.config.given import wrong_in
from fathom.config.groups import Profile
from fathom.errors import InvalidInput, WrongMediaType
from fathom.interfaces.dependencies import JSON, TheCaller, TheService
from fathom.interfaces.uploads import media_type
from fathom.service import batches

router = APIRouter(prefix="/api/v1/batches", tags=["batches"])
_FORMATS: dict[str, Format] = {
    "text/csv": "csv",
    "text/plain": "txt",
    "application/jsonl": "jsonl",
    "application/x-ndjson": "jsonl",
}
BatchId = Annotated[str, Path(max_length=100, description="Id of the batch.", examples=["batch-1a2b3c4d"])]
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"$ref": "#/components/schemas/BatchRequest"}},
            "text/csv": {"schema": {"type": "string"}, "example": "question,profile\nWhat is a descriptor?,quick\n"},
            "application/jsonl": {"schema": {"type": "string"}, "example": '{"question": "What is a descriptor?"}\n'},
        },
    }
}


@router.get("", summary="List batches")
async def list_batches(service: TheService, caller: TheCaller) -> BatchList:
    """List the batches that were asked of the server and that you may see, the newest first."""
    return await batches.latest(service, caller)


@router.post("", status_code=HTTPStatus.ACCEPTED, summary="Start a batch", openapi_extra=_BODY)
async def start_batch(  # noqa: PLR0917 - injected by name
    request: Request,
    response: Response,
    service: TheService,
    caller: TheCaller,
    profile: Annotated[Profile | None, Query(description="For a table: profile of every question.")] = None,
    template: Annotated[str | None, Query(max_length=60, description="For a table: name of a template.")] = None,
    at_once: Annotated[
        int, Query(ge=1, le=500, description="For a table: maximum number of questions researched at once.")
    ] = 8,
    max_usd: Annotated[
        float | None, Query(gt=0, le=10**6, description="For a table: maximum cost of all questions in US dollars.")
    ] = None,
) -> Batch:
    """Research many questions: a JSON object, or a table in which any setting may stand beside a question."""
    kind = media_type(request.headers)
    if kind != JSON and kind not in _FORMATS:
        raise WrongMediaType(f"Questions must be JSON, {', '.join(_FORMATS)}, not {kind[:60] or 'of no media type'}.")
    body = await request.body()
    if kind == JSON:
        made = await batches.start(service, caller, _asked(body))
    else:
        about = BatchRequest(
            questions=["of the body"],
            settings={"profile": profile.value} if profile else {},
            template=template,
            at_once=at_once,
            budget=BatchCaps(max_usd=max_usd),
        )
        made = await batches.start(service, caller, about, (_text(body), _FORMATS[kind]))
    response.headers["Location"] = f"/api/v1/batches/{made.id}"
    return made


@router.get("/{batch_id}", summary="Read a batch")
async def read_batch(batch_id: BatchId, service: TheService, caller: TheCaller) -> Batch:
    """Return a batch with a row for each question."""
    return await batches.one(service, caller, batch_id)


@router.delete("/{batch_id}", status_code=HTTPStatus.NO_CONTENT, summary="Cancel a batch")
async def cancel_batch(batch_id: BatchId, service: TheService, caller: TheCaller) -> None:
    """End a batch and the runs of its questions that are under way; what has finished stays."""
    await batches.cancel(service, caller, batch_id)


def _asked(body: bytes) -> BatchRequest:
    try:
        return BatchRequest.model_validate_json(body)
    except ValidationError as error:
        how = "the OpenAPI document describes the body"
        raise InvalidInput(wrong=wrong_in(error.errors()), next_step=how) from None


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise InvalidInput("The body is not text in UTF-8.", next_step="send it in UTF-8") from None
