"""The results folder of a benchmark, written anew from the rows of its batch after each run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmarks.research.article import article, explanation
from benchmarks.research.benchmark import Benchmark, Finished
from benchmarks.results import QUESTIONS, REPORTS, RESULTS, Question, Result, write_lines
from fathom.models import Report
from fathom.models.run import BatchRow
from fathom.text.citations import without_citations

SUBMISSION = "submission"


def write_outcome(out: Path, benchmark: Benchmark, questions: Sequence[Question], rows: Sequence[BatchRow]) -> None:
    """Write questions, results, reports and the submission; a row belongs to the question in its place.

    A question that was not researched to its end has a result without a report, and is not in the submission.
    """
    finished, results = [], []
    (out / REPORTS).mkdir(parents=True, exist_ok=True)
    for question, row in zip(questions, rows, strict=True):
        result = _result(question, row)
        if row.status.finished and row.report:
            place = Path(row.report)
            report = Report.model_validate_json(place.with_suffix(".json").read_bytes())
            text = article(report)
            result = result.model_copy(update={"report": f"{REPORTS}/{file_name(question.id)}.md"})
            (out / result.report).write_text(text, encoding="utf-8")
            finished.append(Finished(question, result, text, explanation(report), place.parent))
        results.append(result)
    write_lines(out / QUESTIONS, questions)
    write_lines(out / RESULTS, results)
    made = out / f".{SUBMISSION}"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    benchmark.write(made, finished)
    shutil.rmtree(out / SUBMISSION, ignore_errors=True)
    made.rename(out / SUBMISSION)


def file_name(question_id: str) -> str:
    """Return an id as a file can be called."""
    return re.sub(r"[^\w.-]", "_", question_id)


def _result(question: Question, row: BatchRow) -> Result:
    return Result(
        id=question.id,
        status=row.status,
        artifacts=str(Path(row.report).parent) if row.report else "",
        answer=without_citations(row.answer).strip() if row.answer else row.answer,
        confidence=row.confidence,
        llm_calls=row.llm_calls,
        tool_calls=row.tool_calls,
        tokens=row.tokens,
        usd=row.cost_usd,
        seconds=row.seconds,
    )
