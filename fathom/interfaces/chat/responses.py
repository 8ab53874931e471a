"""`/v1/responses`, as OpenAI's API has it. A response has the id of its run, so nothing is kept here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from time import time
from typing import Any
from uuid import UUID, uuid4

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from fathom.client.shapes import Run
from fathom.errors import FathomError, RunNotFound
from fathom.interfaces import problems
from fathom.interfaces.chat import answers, conversations
from fathom.interfaces.chat.answers import ChatAnswer, Conversation, Earlier
from fathom.interfaces.chat.conversations import begin, collected, researched, said
from fathom.interfaces.chat.shapes import ResponseRequest, model_of, settings_of
from fathom.interfaces.chat.wire import SILENCE, citation_of, created, error_of, event, patient, server_of
from fathom.interfaces.dependencies import STREAM, Key, TheCaller, TheService
from fathom.models import RunState
from fathom.service.caller import Caller
from fathom.service.progress import Begun
from fathom.service.runs import RunService

router = APIRouter(prefix="/v1/responses", include_in_schema=False)  # OpenAI's document describes it
_STATUS = {RunState.queued: "queued", RunState.failed: "failed", RunState.cancelled: "cancelled"}


@router.post("")
async def respond(
    asked: ResponseRequest, request: Request, service: TheService, caller: TheCaller, idempotency_key: Key = ""
) -> Response:
    """Answer what a conversation asks; with `background`, return at once."""
    settings_of(asked.model)
    messages = asked.messages()
    if (done := conversations.answer(messages)) is not None:
        response = _Response(uuid4().hex, asked.model, int(time()), asked)
        if asked.stream:
            return _stream(response, said(done))
        return JSONResponse(response.data("completed", ChatAnswer(done, []), []))
    talk = await asyncio.to_thread(answers.read, messages)  # of two megabytes, it takes seconds
    if asked.previous_response_id:
        talk = await _after(service, caller, talk, asked.previous_response_id)
    begun = await begin(service, caller, asked, talk, idempotency_key)
    run, server = begun.run, server_of(request)
    response = _Response(UUID(run.id).hex, asked.model, created(run.created), asked)
    if asked.stream:
        return _stream(response, researched(service, caller, begun, server))
    if asked.background:
        return JSONResponse(response.data(_status(run)))

    async def whole() -> dict[str, Any]:
        return response.data("completed", *await collected(researched(service, caller, begun, server)))

    return await patient(whole)


@router.get("/{response_id}")
async def read_response(response_id: str, request: Request, service: TheService, caller: TheCaller) -> dict[str, Any]:
    """Return a response as far as it is."""
    run = await service.read(caller, _run_id(response_id))
    response = _Response(UUID(run.id).hex, model_of(run.settings), created(run.created), None, run.parent)
    waits = run.state is RunState.waiting and run.asked is not None
    if run.state is RunState.cancelled or not (waits or run.state.ended):
        return response.data(_status(run))
    try:
        parts = researched(service, caller, Begun(run), server_of(request))
        return response.data("completed", *await collected(parts))
    except FathomError as error:
        return response.data(_STATUS.get(run.state, "failed"), error=error)


@router.post("/{response_id}/cancel")
async def cancel_response(response_id: str, service: TheService, caller: TheCaller) -> dict[str, Any]:
    """End the run of a response."""
    found = await service.open(caller, _run_id(response_id))
    run = await found.read()
    response = _Response(UUID(run.id).hex, model_of(run.settings), created(run.created), None, run.parent)
    if run.state.ended:
        return response.data(_STATUS.get(run.state, "completed"))
    await found.cancel()
    return response.data("cancelled")


async def _after(service: RunService, caller: Caller, talk: Conversation, previous: str) -> Conversation:
    """Return a conversation with the run of the response before it; what that asked is answered."""
    run = await service.read(caller, _run_id(previous))
    return Conversation(talk.question, {}, Earlier(run.id, asks=not run.state.ended))


def _run_id(response_id: str) -> str:
    try:
        return str(UUID(hex=response_id.removeprefix("resp_")))
    except ValueError:
        message = f"There is no response {response_id[:60]!r}."
        raise RunNotFound(message, next_step="its id begins with resp_") from None


def _status(run: Run) -> str:
    return _STATUS.get(run.state, "completed" if run.state.ended else "in_progress")


class _Response:
    """One response: its fields, and the fields of its items."""

    def __init__(
        self, name: str, model: str, created_at: int, asked: ResponseRequest | None, parent: str | None = None
    ) -> None:
        self._name = name
        previous = asked.previous_response_id if asked else f"resp_{UUID(parent).hex}" if parent else None
        self._head = {
            "id": f"resp_{name}",
            "object": "response",
            "created_at": created_at,
            "model": model,
            "instructions": asked.instructions if asked else None,
            "metadata": (asked.metadata if asked else None) or {},
            "previous_response_id": previous,
            "background": bool(asked and asked.background),
            "incomplete_details": None,
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "temperature": None,
            "top_p": None,
            "text": {"format": {"type": "text"}},
            "store": True,
        }

    def data(
        self,
        status: str,
        answer: ChatAnswer | None = None,
        lines: list[str] | None = None,
        error: FathomError | None = None,
    ) -> dict[str, Any]:
        """Return the response, with its items as far as there are any."""
        output = [self.reasoning("\n".join(lines))] if lines else []
        output += [self.message(answer)] if answer else []
        failure = error_of(problems.problem_of(error), error)["error"]["message"] if error else None
        return {
            **self._head,
            "status": status,
            "error": {"code": "server_error", "message": failure} if failure else None,
            "output": output,
            "usage": _usage(answer) if answer else None,
        }

    def reasoning(self, text: str = "", status: str = "completed") -> dict[str, Any]:
        """Return the item that tells what happened."""
        summary = [{"type": "summary_text", "text": text}] if text else []
        return {"id": f"rs_{self._name}", "type": "reasoning", "summary": summary, "status": status}

    def message(self, answer: ChatAnswer | None, status: str = "completed") -> dict[str, Any]:
        """Return the item that answers."""
        content = [self.part(answer.text, self.annotations(answer))] if answer else []
        return {"id": f"msg_{self._name}", "type": "message", "role": "assistant", "status": status, "content": content}

    def part(self, text: str = "", annotations: list[dict[str, Any]] | None = None) -> dict[str, Any]:
        """Return the text of an answer."""
        return {"type": "output_text", "text": text, "annotations": annotations or [], "logprobs": []}

    def annotations(self, answer: ChatAnswer) -> list[dict[str, Any]]:
        """Return the references of an answer."""
        return [{"type": "url_citation", **citation_of(reference)} for reference in answer.references]


def _usage(answer: ChatAnswer) -> dict[str, Any]:
    return {
        "input_tokens": answer.prompt_tokens,
        "input_tokens_details": {"cached_tokens": answer.cached_tokens},
        "output_tokens": answer.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }


def _stream(response: _Response, parts: AsyncIterator[str | ChatAnswer]) -> StreamingResponse:
    return StreamingResponse(_events(response, parts), media_type="text/event-stream", headers=STREAM)


async def _events(response: _Response, parts: AsyncIterator[str | ChatAnswer]) -> AsyncIterator[str]:
    """Yield the events of a response in the order that OpenAI documents, numbered."""
    number = -1

    def of(kind: str, **fields: Any) -> str:
        nonlocal number
        number += 1
        return event({"type": f"response.{kind}", "sequence_number": number, **fields}, f"response.{kind}")

    yield of("created", response=response.data("in_progress"))
    yield of("in_progress", response=response.data("in_progress"))
    lines = list[str]()
    thinking = {"item_id": response.reasoning()["id"], "output_index": 0, "summary_index": 0}
    try:
        async for part in parts:
            if isinstance(part, ChatAnswer):
                for line in _told(response, thinking, lines, of) if lines else ():
                    yield line
                for line in _answered(response, part, 1 if lines else 0, of):
                    yield line
                yield of("completed", response=response.data("completed", part, lines))
                continue
            if not lines:
                yield of("output_item.added", output_index=0, item=response.reasoning(status="in_progress"))
                yield of("reasoning_summary_part.added", **thinking, part={"type": "summary_text", "text": ""})
            if part:
                delta = f"\n{part}" if lines else part
                lines.append(part)
                yield of("reasoning_summary_text.delta", **thinking, delta=delta)
            else:
                yield SILENCE + of("reasoning_summary_text.delta", **thinking, delta="")
    except FathomError as error:
        yield of("failed", response=response.data("failed", None, lines, error))


def _told(response: _Response, thinking: dict[str, Any], lines: list[str], of: Callable[..., str]) -> Iterator[str]:
    text = "\n".join(lines)
    yield of("reasoning_summary_text.done", **thinking, text=text)
    yield of("reasoning_summary_part.done", **thinking, part={"type": "summary_text", "text": text})
    yield of("output_item.done", output_index=0, item=response.reasoning(text))


def _answered(response: _Response, answer: ChatAnswer, index: int, of: Callable[..., str]) -> Iterator[str]:
    place = {"item_id": response.message(None)["id"], "output_index": index, "content_index": 0}
    yield of("output_item.added", output_index=index, item=response.message(None, "in_progress"))
    yield of("content_part.added", **place, part=response.part())
    for piece in answer.pieces():
        yield of("output_text.delta", **place, delta=piece, logprobs=[])
    annotations = response.annotations(answer)
    for position, annotation in enumerate(annotations):
        yield of("output_text.annotation.added", **place, annotation_index=position, annotation=annotation)
    yield of("output_text.done", **place, text=answer.text, logprobs=[])
    yield of("content_part.done", **place, part=response.part(answer.text, annotations))
    yield of("output_item.done", output_index=index, item=response.message(answer))
