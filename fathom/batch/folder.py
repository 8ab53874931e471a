"""The folder of a batch on the artifact store: a record for each question, the results, and their page."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

import fathom.report
from fathom.budget.ledger import Cost
from fathom.models import Answered, Model
from fathom.models.run import BatchQuestion, BatchResult, BatchRow, RowStatus
from fathom.report.html import policy
from fathom.report.prose import draft_html
from fathom.report.tables import FORMULA_SIGNS
from fathom.storage.atomic import side_by_side
from fathom.storage.store import BATCHES, ArtifactStore, json_bytes
from fathom.text.plain import clean_text, counted

QUESTIONS = "questions.jsonl"
RESULTS = "results.jsonl"
TABLE = "results.csv"
INDEX = "index.html"


class Record(Model):
    """The stored record of a question, written before its run is submitted and again when the run has ended."""

    row: BatchRow
    run_key: str = ""  # of the run's results
    attempt: int = 1  # a question whose run failed is asked again in another run, under the same run key
    granted: Cost | None = None  # to this attempt, until it has ended; None: the batch has no caps
    used: Cost | None = None  # by all attempts that have ended


class BatchFolder:
    """`research_batches/{key}` in a store."""

    def __init__(self, store: ArtifactStore, key: str) -> None:
        self.store = store
        self.key = key
        self.path = f"{BATCHES}/{key}"

    async def records(self, questions: Sequence[BatchQuestion]) -> dict[str, Record]:
        """Return a record for each question by its id: the stored one, else a new one."""
        ids = question_ids(questions)
        stored = {*await self.store.list(f"{self.path}/rows")}

        async def read(one: tuple[int, str, BatchQuestion]) -> Record:
            number, row_id, question = one
            there = f"{row_id}.json" in stored
            found = await self.store.stored(Record, self._row(row_id), "remove that file") if there else None
            record = found or Record(row=BatchRow(number=number, question=question.question))
            row = record.row.model_copy(update={"number": number, "labels": question.labels})
            return record.model_copy(update={"row": row})

        numbered = [(number, *one) for number, one in enumerate(zip(ids, questions, strict=True), 1)]
        return dict(zip(ids, await side_by_side(numbered, read), strict=True))

    async def save(self, row_id: str, record: Record) -> None:
        """Store the record of a question."""
        await self.store.write(self._row(row_id), json_bytes(record))

    async def save_results(self, title: str, rows: Sequence[BatchRow]) -> None:
        """Store `results.jsonl`, `results.csv` and the index page as they are now."""
        lines = "".join(f"{row.model_dump_json()}\n" for row in rows)
        await self.store.write(f"{self.path}/{RESULTS}", lines.encode())
        await self.store.write(f"{self.path}/{TABLE}", _table(rows).encode("utf-8-sig"))
        await self.store.write(f"{self.path}/{INDEX}", render_index(title, rows).encode())

    def result(self, run_id: str, rows: Sequence[BatchRow]) -> BatchResult:
        """Return the result of the batch."""
        costs = [row.cost_usd for row in rows]
        return BatchResult(
            run_id=run_id,
            artifacts=self.store.address(self.path),
            results=self.store.address(f"{self.path}/{RESULTS}"),
            page=self.store.address(f"{self.path}/{INDEX}"),
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


_TEMPLATES = Path(__file__).parent / "templates"
_STYLES = (Path(fathom.report.__file__).parent / "templates" / "report.css", _TEMPLATES / "index.css")


def render_index(title: str, rows: Sequence[BatchRow]) -> str:
    """Render the index; the same arguments give the same bytes."""
    style = "".join(path.read_text(encoding="utf-8") for path in _STYLES)
    page: str = _template().render(
        title=clean_text(title),
        rows=[_cells(row) for row in rows],
        totals=", ".join(f"{count} {words(status)}" for status, count in _counts(rows).items()),
        used=used(rows),
        style=Markup(style),  # noqa: S704 - files of this package
        policy=policy(style),
    )
    return page


def _table(rows: Sequence[BatchRow]) -> str:
    """Return the rows for a spreadsheet, which must not take a text for a formula."""
    labels = dict.fromkeys(name for row in rows for name in row.labels)
    told = ["question", "status", "answered", "answer", "answer_sources", "reason", "report", "cost_usd"]
    columns = ["number", *labels, *told]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows:
        found = row.model_dump(mode="json") | {"answer_sources": "\n".join(row.answer_sources)} | row.labels
        cells = (found.get(column, "") for column in columns)
        writer.writerow([f"'{cell}" if str(cell).startswith(FORMULA_SIGNS) else cell for cell in cells])
    return text.getvalue()


def words(status: RowStatus) -> str:
    """Return a status in words."""
    return status.value.replace("_", " ")


def used(rows: Sequence[BatchRow]) -> str:
    """Return what all questions used so far, in words."""
    parts = [counted(sum(row.tool_calls for row in rows), "tool call")]
    if calls := sum(row.llm_calls for row in rows):
        priced = [row.cost_usd for row in rows if row.cost_usd is not None]
        parts += [counted(calls, "model call"), f"{sum(row.tokens for row in rows):,} tokens", f"${sum(priced):.4f}"]
        if unknown := len(rows) - len(priced):
            parts.append(f"the price of {counted(unknown, 'question')} is unknown")
    return ", ".join(parts)


def dollars(row: BatchRow) -> str:
    """Return the cost of a question; nothing for one that cost nothing without a model."""
    return (
        "" if not row.llm_calls and row.cost_usd == 0 else "unknown" if row.cost_usd is None else f"${row.cost_usd:.4f}"
    )


def _counts(rows: Sequence[BatchRow]) -> dict[RowStatus, int]:
    found = Counter(row.status for row in rows)
    return {status: found[status] for status in RowStatus if found[status]}


def _cells(row: BatchRow) -> dict[str, Any]:
    return {
        "number": row.number,
        "question": clean_text(row.question),
        "status": RowStatus.degraded.value if row.answered is Answered.no else row.status.value,
        "said": words(row.status) + (f", {row.answered.doubt}" if row.answered and row.answered.doubt else ""),
        "detail": draft_html(row.answer) if row.answer else clean_text(row.reason),
        # Relative, so that the index can be opened from a copy of the store.
        "report": f"../../{row.report[row.report.index('research_artifacts/') :].removesuffix('md')}html"
        if "research_artifacts/" in row.report
        else "",
        "sources": row.sources,
        "cost": dollars(row),
        "seconds": f"{row.seconds:.0f}" if row.status.ended else "",
    }


@cache
def _template() -> Any:
    from fathom.report.html import pages_in

    return pages_in(_TEMPLATES).get_template("index.html.j2")
