"""The folder of a batch on the artifact store: one record for each question, and the results made from them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from pydantic import ValidationError

from fathom.batch.page import render_index
from fathom.budget.ledger import Cost
from fathom.errors import StoreError
from fathom.models import Model
from fathom.models.run import BatchQuestion, BatchResult, BatchRow, RowStatus
from fathom.storage.atomic import READERS
from fathom.storage.store import ArtifactStore, json_bytes

BATCHES = "research_batches"
QUESTIONS = "questions.jsonl"
RESULTS = "results.jsonl"
INDEX = "index.html"


class Share(Model):
    """What the run of a question may use, or has used, of the batch's budget."""

    usd: str
    tokens: int
    calls: int

    @classmethod
    def of(cls, cost: Cost) -> Share:
        """Return a cost as it is stored."""
        return cls(usd=str(cost.usd), tokens=cost.tokens, calls=cost.calls)

    @property
    def cost(self) -> Cost:
        """The same as a cost."""
        return Cost(Decimal(self.usd), self.tokens, self.calls)


class Record(Model):
    """What the store keeps of a question: written before its run is submitted, and when it has ended."""

    row: BatchRow
    run_key: str = ""  # of the run's results
    attempt: int = 1  # a question whose run failed is asked again in another one, under the same run key
    granted: Share | None = None  # to this attempt, until it has ended; None: the batch has no caps
    used: Share | None = None  # by all attempts that have ended


class BatchFolder:
    """`research_batches/{key}` in a store."""

    def __init__(self, store: ArtifactStore, key: str) -> None:
        self._store = store
        self.path = f"{BATCHES}/{key}"

    async def records(self, questions: Sequence[BatchQuestion]) -> dict[str, Record]:
        """Return a record for each question by its id: the stored one, else a new one."""
        ids = question_ids(questions)
        stored = {*await self._store.list(f"{self.path}/rows")}
        limit = asyncio.Semaphore(READERS)

        async def read(number: int, row_id: str, question: BatchQuestion) -> Record:
            if f"{row_id}.json" not in stored:
                return Record(row=BatchRow(number=number, question=question.question))
            async with limit:
                data = await self._store.read(self._row(row_id))
            try:
                record = Record.model_validate_json(data)
            except ValidationError as error:
                address = self._store.address(self._row(row_id))
                raise StoreError(f"{address} is damaged: {error.errors()[0]['msg']}.", next_step="remove it") from None
            return record.model_copy(update={"row": record.row.model_copy(update={"number": number})})

        numbered = enumerate(zip(ids, questions, strict=True), 1)
        return dict(zip(ids, await asyncio.gather(*(read(n, i, q) for n, (i, q) in numbered)), strict=True))

    async def save(self, row_id: str, record: Record) -> None:
        """Store the record of a question."""
        await self._store.write(self._row(row_id), json_bytes(record))

    async def save_results(self, title: str, rows: Sequence[BatchRow]) -> None:
        """Store `results.jsonl` and the index page as they are now."""
        lines = "".join(f"{row.model_dump_json()}\n" for row in rows)
        await self._store.write(f"{self.path}/{RESULTS}", lines.encode())
        await self._store.write(f"{self.path}/{INDEX}", render_index(title, rows).encode())

    def result(self, run_id: str, rows: Sequence[BatchRow]) -> BatchResult:
        """Return what the batch came to."""
        costs = [row.cost_usd for row in rows]
        return BatchResult(
            run_id=run_id,
            artifacts=self._store.address(self.path),
            results=self._store.address(f"{self.path}/{RESULTS}"),
            page=self._store.address(f"{self.path}/{INDEX}"),
            questions=len(rows),
            ended=dict(
                sorted(Counter(row.status for row in rows).items(), key=lambda item: [*RowStatus].index(item[0]))
            ),
            cost_usd=None if None in costs else sum(cost for cost in costs if cost),
            tokens=sum(row.tokens for row in rows),
        )

    def _row(self, row_id: str) -> str:
        return f"{self.path}/rows/{row_id}.json"


def question_ids(questions: Sequence[BatchQuestion]) -> list[str]:
    """Return an id for each question that does not depend on the others, unless they are equal."""
    seen = Counter[str]()
    ids = []
    for question in questions:
        seen[question.digest] += 1
        again = seen[question.digest]
        ids.append(question.digest if again == 1 else f"{question.digest}-{again}")
    return ids
