"""`/v1/chat/completions` and `/v1/models`, as OpenAI's API has them, and the state of a conversation beside them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from time import time
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from fathom.errors import FathomError, InvalidInput
from fathom.interfaces import problems
from fathom.interfaces.chat import answers, conversations
from fathom.interfaces.chat.answers import ChatAnswer, Reference
from fathom.interfaces.chat.conversations import begin, collected, researched, said
from fathom.interfaces.chat.shapes import MODELS, ChatRequest, Message, settings_of
from fathom.interfaces.chat.wire import (
    SILENCE,
    citation_of,
    created,
    error_of,
    event,
    patient,
    server_of,
)
from fathom.interfaces.dependencies import STREAM, Key, TheCaller, TheService
from fathom.models import Matter, Note, Plan
from fathom.service import reports
from fathom.service.runs import RunHandle
from fathom.telemetry.audit_events import AuditType, ChainedEvent

router = APIRouter(prefix="/v1", include_in_schema=False)  # OpenAI's document describes it
_MADE = 1_764_000_000  # when the models came to be


@router.get("/models")
async def list_models() -> dict[str, Any]:
    """Return the models."""
    return {"object": "list", "data": [_model(name) for name in MODELS]}


@router.get("/models/{name}")
async def read_model(name: str) -> dict[str, Any]:
    """Return a model."""
    settings_of(name)
    return _model(name)


@router.post("/chat/completions")
async def complete(
    asked: ChatRequest, request: Request, service: TheService, caller: TheCaller, idempotency_key: Key = ""
) -> Response:
    """Answer the last message of a conversation."""
    settings_of(asked.model)
    if (done := conversations.answer(asked.messages)) is not None:
        writer = _Writer(asked, f"chatcmpl-{uuid4()}", int(time()))
        return writer.streamed(said(done)) if asked.stream else JSONResponse(writer.whole(ChatAnswer(done, []), ""))
    if (asked.n or 1) > 1:
        raise InvalidInput("n: a question is researched once.", next_step="leave it out")
    if (asked.response_format or {}).get("type") not in (None, "text"):
        how = "GET /api/v1/runs/{id}/report with Accept: application/json has the report as data"
        raise InvalidInput("The answer is a report in Markdown and no other format.", next_step=how)
    talk = await asyncio.to_thread(answers.read, asked.messages)  # of two megabytes, it takes seconds
    begun = await begin(service, caller, asked, talk, idempotency_key)
    run, server = begun.run, server_of(request)
    writer = _Writer(asked, f"chatcmpl-{run.id}", created(run.created))
    if asked.stream:
        return writer.streamed(researched(service, caller, begun, server))

    async def whole() -> dict[str, Any]:
        answer, lines = await collected(researched(service, caller, begun, server))
        state = await state_of(await service.open(caller, run.id), asked.messages, answer.text)
        return {**writer.whole(answer, "\n".join(lines)), "fathom": state}

    return await patient(whole)


class _Writer:
    """Writes one completion, whole or in chunks."""

    def __init__(self, asked: ChatRequest, name: str, created_at: int) -> None:
        self._asked = asked
        self._head = {"id": name, "created": created_at, "model": asked.model, "system_fingerprint": None}

    def whole(self, answer: ChatAnswer, reasoning: str) -> dict[str, Any]:
        """Return a completion."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
        message["annotations"] = list(map(_annotation, answer.references))
        if reasoning:
            message["reasoning_content"] = reasoning
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": _usage(answer)}

    def streamed(self, parts: AsyncIterator[str | ChatAnswer]) -> StreamingResponse:
        """Return a response that sends chunks."""
        return StreamingResponse(self._events(parts), media_type="text/event-stream", headers=STREAM)

    async def _events(self, parts: AsyncIterator[str | ChatAnswer]) -> AsyncIterator[str]:
        yield self._chunk({"role": "assistant", "content": ""})
        try:
            async for part in parts:
                if not isinstance(part, ChatAnswer):
                    told = {"reasoning_content": f"{part}\n"} if part else {"content": ""}
                    yield ("" if part else SILENCE) + self._chunk(told)
                    continue
                for piece in part.pieces():
                    yield self._chunk({"content": piece})
                if part.references:
                    yield self._chunk({"annotations": list(map(_annotation, part.references))})
                yield self._chunk({}, finish_reason="stop")
                if self._asked.stream_options and self._asked.stream_options.include_usage:
                    yield self._event({"choices": [], "usage": _usage(part)})
        except FathomError as error:
            yield event(error_of(problems.problem_of(error), error))
        yield "data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._event({"choices": [choice]})

    def _event(self, data: dict[str, Any]) -> str:
        return event({**self._head, "object": "chat.completion.chunk", **data})


def _annotation(reference: Reference) -> dict[str, Any]:
    return {"type": "url_citation", "url_citation": citation_of(reference)}


def _usage(answer: ChatAnswer) -> dict[str, int]:
    sent, received = answer.prompt_tokens, answer.completion_tokens
    return {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _MADE, "owned_by": "fathom"}


async def state_of(run: RunHandle, said: Sequence[Message], answer: str) -> dict[str, Any]:
    """Return the messages so far, the plan, each call with its findings and the answer; then the checklist.

    A run that waits for a clarification has neither plan nor calls: its answer is what it asks.
    """
    read = await run.read()
    folder = run.found.folder
    events = (await reports.audit(run)).events if folder else []
    notes = (await folder.notes() or []) if folder else []
    sources = {str(one.details["source_id"]): one for one in events if one.type is AuditType.source_added}
    asked = read.asked.questions if read.asked and read.asked.matter is Matter.question else []
    messages = [message.model_dump(exclude={"type"}) for message in said]
    if read.plan:
        messages += [{"role": "assistant", "content": _told(read.plan)}, *_calls(events, notes, sources)]
    return {
        "messages": [*messages, {"role": "assistant", "content": answer}],
        "needs_clarification": bool(asked),
        "clarifying_questions": [question.question for question in asked],
        "checklist": [
            {
                "id": str(step.step_id),
                "question": step.title,
                "resolved": step.status.value == "done",
                "findings": _findings([note for note in notes if str(step.step_id) in note.steps], sources),
            }
            for step in (read.plan.steps if read.plan else [])
        ],
        "iteration_count": read.result.metrics.rounds if read.result else 0,
    }


def _told(plan: Plan) -> str:
    return "\n".join([plan.plan_title, "", *(f"{step.step_id}. {step.title}" for step in plan.steps)])


def _calls(
    events: Sequence[ChainedEvent], notes: Sequence[Note], sources: Mapping[str, ChainedEvent]
) -> Iterator[dict[str, str]]:
    """Yield two messages for each call of a tool: what was asked of it, and what was found."""
    for call in events:
        if call.type is AuditType.tool_called:
            made = [note for note in notes if note.artifact_file == call.details.get("artifact_file")]
            found = _findings(made, sources) or {"failures": call.details.get("failures")}
            read = {"read": [_named(one) for one in sources.values() if one.parent == call.id]}
            yield {"role": "tool", "name": str(call.details["tool"]), "content": str(call.details["input"])}
            yield {"role": "tool", "name": "search_results", "content": json.dumps({**found, **read})}


def _findings(notes: Sequence[Note], sources: Mapping[str, ChainedEvent]) -> dict[str, Any] | None:
    """Return what notes say and by which sources; None without any."""
    if not notes:
        return None
    ids = dict.fromkeys(source_id for note in notes for source_id in note.source_ids if source_id in sources)
    return {
        "summary": " ".join(note.summary for note in notes),
        "key_points": [point for note in notes for point in note.extraction],
        "sources": [_named(sources[one]) for one in ids],
    }


def _named(source: ChainedEvent) -> dict[str, Any]:
    return {"title": source.action, **source.details}
