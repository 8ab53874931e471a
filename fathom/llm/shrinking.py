"""A request that is too long for a model's window, without the least relevant half of its material."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.models import Note, SourceText
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


def shrunk(request: Request) -> Request | None:
    """Return a smaller request of the same kind, or None when nothing more can be left out."""
    match request:
        case PlanRequest():
            return _with(request, documents=request.documents[: len(request.documents) // 2])
        case CompressRequest():
            texts = _half_of_texts(request.texts, f"{request.step_title} {request.step_description}")
            return _with(request, texts=texts) if texts else None
        case SectionRequest():
            return _with(
                request,
                notes=_half_of_notes(request.notes, f"{request.section.heading} {request.section.focus}"),
                written=request.written[(len(request.written) + 1) // 2 :],
                passages=_half_of_texts(request.passages, request.section.heading),
            )
        case ResearchRequest():
            focus = f"{request.step.title} {request.step.description}"
            return _with(request, notes=_half_of_notes(request.notes, focus))
        case ReflectRequest() | OutlineRequest() | AnswerRequest():
            return _with(request, notes=_half_of_notes(request.notes, request.query))
    return None


def _with(request: Request, **smaller: Sequence[object]) -> Request | None:
    """Return the request with smaller lists; None when they are the ones it has."""
    changed = any(items != getattr(request, name) for name, items in smaller.items())
    return request.model_copy(update=smaller) if changed else None


def _half_of_notes(notes: list[Note], focus: str) -> list[Note]:
    return within_budget(notes, focus, sum(note.tokens for note in notes) // 2)


def _half_of_texts(texts: list[SourceText], focus: str) -> list[SourceText]:
    return narrow(texts, focus, sum(count_tokens(text.text) for text in texts) // 2).texts
