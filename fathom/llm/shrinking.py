"""A request that is too long for a model's window, without the least relevant part of its material."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.models import SourceText, told_by
from fathom.retrieval.narrowing import narrow, within_budget
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
from fathom.roles.base import Remembering
from fathom.text.tokens import count_tokens


def shrunk(request: Request, share: float = 0.5) -> Request | None:
    """Return a request of the same kind with a share of its material, or None when nothing more can be left out."""
    match request:
        case PlanRequest():
            return _with(request, documents=request.documents[: int(len(request.documents) * share)])
        case CompressRequest():
            focus = f"{request.step_title} {request.step_description}"
            texts = _part_of_texts(request.texts, focus, share, fill=True)
            return _with(request, texts=texts) if texts else None
        case SectionRequest():
            return _with(
                request,
                **_part_of_memory(request, f"{request.section.heading} {request.section.focus}", share),
                written=request.written[len(request.written) - int(len(request.written) * share) :],
                passages=_part_of_texts(request.passages, request.section.heading, share),
            )
        case ResearchRequest():
            focus = f"{request.step.title} {request.step.description}"
            return _with(request, **_part_of_memory(request, focus, share))
        case ReflectRequest() | OutlineRequest() | AnswerRequest():
            return _with(request, **_part_of_memory(request, request.query, share))
    return None


def _with(request: Request, **smaller: Sequence[object]) -> Request | None:
    """Return the request with smaller lists; None when they are the ones it has."""
    changed = any(items != getattr(request, name) for name, items in smaller.items())
    return request.model_copy(update=smaller) if changed else None


def _part_of_memory(request: Remembering, focus: str, share: float) -> dict[str, Sequence[object]]:
    """Return a share of the notes that are shown whole or, where none can be left out, of the briefs."""
    shown = request.shown
    kept = within_budget(shown, focus, int(sum(note.tokens for note in shown) * share))
    briefs = request.briefs if kept != shown else request.briefs[: int(len(request.briefs) * share)]
    told = told_by(briefs)
    return {"notes": [n for n in request.notes if n in kept or n.artifact_file in told], "briefs": briefs}


def _part_of_texts(texts: list[SourceText], focus: str, share: float, *, fill: bool = False) -> list[SourceText]:
    return narrow(texts, focus, int(sum(count_tokens(text.text) for text in texts) * share), fill=fill).texts
