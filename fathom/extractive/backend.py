"""The model-free backend: every role answered by a pure function of its request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fathom.config.groups import EXTRACTIVE
from fathom.extractive.answering import write_answer
from fathom.extractive.clarifier import clarify
from fathom.extractive.compressor import compress
from fathom.extractive.critic import reflect
from fathom.extractive.planner import plan
from fathom.extractive.reporter import outline, write_section
from fathom.extractive.researcher import decide
from fathom.llm.base import Completion, ModelCall
from fathom.models import Usage
from fathom.retrieval.meaning import read_by
from fathom.roles import OUTLINE, SECTION, Answer, CorrectionAnswer, JudgeAnswer, Text

_ANSWERS: Mapping[str, Callable[[Any], Answer]] = {
    "clarifier": clarify,
    "planner": plan,
    "researcher": decide,
    "compressor": compress,
    "critic": reflect,
    "outline": outline,
    "section": write_section,
    "answer": write_answer,
    "judge": lambda _request: JudgeAnswer(opinions=[]),  # words alone settle what they can before anybody is asked
    "correction": lambda _request: CorrectionAnswer(corrections=[]),
}

_BY_MEANING = frozenset({OUTLINE.name, SECTION.name})  # notes gain nothing by it, and answers of 140 characters lose


def reader_of(role: str, embed_model: str | None) -> str | None:
    """Return the model that ranks by meaning what a role quotes; None where words alone rank."""
    return embed_model if role in _BY_MEANING else None


class ExtractiveBackend:
    """Computes answers from the request alone: the same bytes every time, no network, no cost.

    No model either, unless one ranks what is quoted by meaning, too.
    """

    def __init__(self, embed_model: str | None = None) -> None:
        self._embed_model = embed_model

    async def complete(self, call: ModelCall) -> Completion:
        """Answer one request."""
        with read_by(reader_of(call.spec.name, self._embed_model)):
            answer = _ANSWERS[call.spec.name](call.request)
        text = answer.text if isinstance(answer, Text) else answer.model_dump_json()
        return Completion(text=text, usage=Usage(), model=EXTRACTIVE)
