"""A request that a model's window cannot take, with half of its material: the least relevant half is left out."""

from __future__ import annotations

from typing import TypeVar

from fathom.models import Note
from fathom.retrieval.narrowing import narrow
from fathom.retrieval.working_memory import within_budget
from fathom.roles import (
    AnswerRequest,
    CompressRequest,
    OutlineRequest,
    PlanRequest,
    ReflectRequest,
    Request,
    ResearchRequest,
    SectionRequest,
)
from fathom.text.tokens import count_tokens

RequestT = TypeVar("RequestT", bound=Request)


def shrunk(request: Request) -> Request | None:
    """Return a smaller request of the same kind, or None when nothing can be left out any more."""
    match request:
        case CompressRequest():
            focus = f"{request.step_title} {request.step_description}"
            room = sum(count_tokens(text.text) for text in request.texts) // 2
            texts = narrow(request.texts, focus, room).texts
            return _with(request, texts=texts) if texts else None
        case PlanRequest():
            documents = request.documents[: len(request.documents) // 2]
            return _with(request, documents=documents) if request.documents else None
        case SectionRequest():
            notes = _half(request.notes, f"{request.section.heading} {request.section.focus}")
            written = request.written[(len(request.written) + 1) // 2 :]
            room = sum(count_tokens(text.text) for text in request.passages) // 2
            passages = narrow(request.passages, request.section.heading, room).texts
            changed = len(notes) < len(request.notes) or request.written or request.passages
            return _with(request, notes=notes, written=written, passages=passages) if changed else None
        case ResearchRequest():
            return _with_half_the_notes(request, request.notes, f"{request.step.title} {request.step.description}")
        case ReflectRequest() | OutlineRequest() | AnswerRequest():
            return _with_half_the_notes(request, request.notes, request.query)
    return None


def _with_half_the_notes(request: RequestT, notes: list[Note], focus: str) -> RequestT | None:
    kept = _half(notes, focus)
    return _with(request, notes=kept) if len(kept) < len(notes) else None


def _half(notes: list[Note], focus: str) -> list[Note]:
    return within_budget(notes, focus, sum(note.tokens for note in notes) // 2)


def _with(request: RequestT, **changed: object) -> RequestT:
    return request.model_copy(update=changed)
