"""A batch: its questions, and how each of them ended."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum

from pydantic import JsonValue

from fathom.models.base import Model
from fathom.models.run import Answered, Ending


class BatchQuestion(Model):
    """A question with the settings that differ from those of its batch, and the user's own run key, if there is one."""

    question: str
    settings: dict[str, JsonValue] = {}
    run_key: str = ""

    @property
    def digest(self) -> str:
        """Ten hex digits that stand for the question and its settings, wherever in the file it is."""
        text = json.dumps([self.question, self.settings, self.run_key], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:10]


class RowStatus(StrEnum):
    """How far a question is, or how it ended."""

    waiting = "waiting"
    running = "running"
    complete = Ending.complete.value
    degraded = Ending.degraded.value
    insufficient_evidence = Ending.insufficient_evidence.value
    failed = Ending.failed.value
    cancelled = "cancelled"
    not_asked = "not_asked"  # the budget of the batch was spent

    @property
    def finished(self) -> bool:
        """Whether the question has been researched to its end, so that it is not asked again."""
        return self in (RowStatus.complete, RowStatus.degraded, RowStatus.insufficient_evidence)

    @property
    def ended(self) -> bool:
        """Whether this batch does nothing more about it."""
        return self not in (RowStatus.waiting, RowStatus.running)


class BatchRow(Model):
    """A line of `results.jsonl`. `cost_usd` is None where a price is not known."""

    number: int  # in the file, from 1
    question: str
    status: RowStatus = RowStatus.waiting
    reason: str = ""
    run_id: str = ""
    report: str = ""  # address of report.md
    answer: str | None = None  # of a run in answer mode
    confidence: float | None = None  # of the answer: probability that it is right, 0 to 1
    answered: Answered | None = None
    sources: int = 0
    tool_calls: int = 0
    llm_calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0


class BatchResult(Model):
    """What a batch returns, and what `fathom batch --json` prints. `ended` counts the questions by how they ended."""

    run_id: str
    artifacts: str  # address of the batch's folder
    results: str  # of results.jsonl
    page: str  # of index.html
    questions: int
    ended: dict[RowStatus, int]
    cost_usd: float | None
    tokens: int

    @property
    def failed(self) -> int:
        """Questions that were not researched to their end."""
        return sum(count for status, count in self.ended.items() if not status.finished)
