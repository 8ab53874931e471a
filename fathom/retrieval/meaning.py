"""Ranking by meaning what words have found, where a run names a model for it (`embed_model`).

Words decide what is found, and a sentence encoder which of the best excerpts come first: "48 hours after being sick"
for a child that threw up. What it says is part of the answers of the backend without a model, which the run stores, so
a replay and a resumed run load no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from fathom.models import Answered
from fathom.retrieval.encoder import load_encoder
from fathom.retrieval.relevance import Found, RankedExcerpts

READ = 30  # best excerpts by words that the model reads; 50 rank no better
FAR, NEAR = 0.2, 0.7  # cosines from which an excerpt gains something, and at which it gains all
MEANING = 0.75  # of the best excerpt's score, that an excerpt gains at most

_model: ContextVar[str | None] = ContextVar("embed_model", default=None)


@contextmanager
def read_by(model: str | None) -> Iterator[None]:
    """Rank by meaning, too, with a model; None: by words alone."""
    before = _model.set(model)
    try:
        yield
    finally:
        _model.reset(before)


def judged(judge: Callable[[], Answered]) -> Answered:
    """Return what is judged of a ranking: where a model reads, there may also be an answer if words alone say so."""
    answered = judge()
    if answered is not Answered.no or _model.get() is None:
        return answered
    with read_by(None):
        return Answered.no if judge() is Answered.no else Answered.maybe


def by_meaning(found: Sequence[Found], question: str, evidence: RankedExcerpts) -> list[Found]:
    """Return excerpts, the best by words first, in the order of words and meaning; as they are without a model."""
    model = _model.get()
    if not model or not found:
        return list(found)
    encoder = load_encoder(model)
    vectors = encoder.encode([question, *(evidence.in_context(each) for each in found[:READ])])
    near = [round(float(cosine), 3) for cosine in vectors[1:] @ vectors[0]]  # other processors round otherwise
    most = MEANING * found[0].score
    gains = (most * min(1.0, max(0.0, (cosine - FAR) / (NEAR - FAR))) for cosine in near)
    read = [each._replace(score=round(each.score + gain, 9)) for each, gain in zip(found, gains, strict=False)]
    return [*sorted(read, key=lambda each: -each.score), *found[READ:]]
