"""Finished runs as they are scored: the claims of each report, the pages that were read, and what was expected."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from benchmarks.results import (
    PAGES,
    QUESTIONS,
    RESULTS,
    Page,
    Question,
    Result,
    System,
    read_lines,
    read_system,
    reason,
)
from fathom.errors import InvalidInput
from fathom.evidence.claims import ClaimSentence, claims_of
from fathom.models import Ending, Report, RunResult, SourceText, ToolOutput
from fathom.models.run import RowStatus
from fathom.report.answer import answer_of
from fathom.report.foreign.lists import comparable
from fathom.report.foreign.reading import read_markdown
from fathom.text.urls import source_ids

_STEP = "give a results folder, or a folder of Fathom's runs"


@dataclass(frozen=True)
class Finished:
    """One question with its end. `texts`: what was read, by source id; None if that is not known."""

    question: Question
    result: Result
    parts: tuple[str, ...] = ()  # texts of the report's sections, without citations; the first answers
    claims: tuple[ClaimSentence, ...] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)  # of the cited sources, by id
    texts: Mapping[str, tuple[SourceText, ...]] | None = None
    dangling: int = 0  # markers that lead to no source
    refuses: bool | None = None  # whether the report says that the sources do not answer; None if only its words tell


@dataclass(frozen=True)
class Runs:
    """The runs of one system over one set."""

    system: System
    finished: list[Finished]


def read_runs(folder: Path, questions: Mapping[str, Question] | None = None) -> Runs:
    """Read a results folder, or any folder of Fathom's runs: a store, a batch, or one run.

    `questions`: what is expected, by the text of the question, where the folder does not say.

    Raises:
        InvalidInput: there are no runs in it, or what is there is damaged.
    """
    try:
        system, found = _read_folder(folder, questions or {})
    except KeyError as error:
        raise InvalidInput(f"{folder} has a result without its question: {error}.", next_step=_STEP) from None
    except ValueError as error:
        why = reason(error) if isinstance(error, ValidationError) else f"{error}"
        raise InvalidInput(f"{folder} is damaged: {why}.", next_step=_STEP) from None
    if not found:
        raise InvalidInput(f"{folder} holds no results.", next_step=_STEP)
    return Runs(system, sorted(found, key=lambda one: one.question.id))


def _read_folder(folder: Path, questions: Mapping[str, Question]) -> tuple[System, list[Finished]]:
    if system := read_system(folder):
        asked = {one.id: one for one in read_lines(folder / QUESTIONS, Question)}
        pages = read_lines(folder / PAGES, Page)
        return system, [
            _read(folder, questions.get(asked[one.id].question, asked[one.id]), one, pages)
            for one in read_lines(folder / RESULTS, Result)
        ]
    return System(name="fathom", set=folder.name), list(_runs_below(folder, questions))


def _read(folder: Path, question: Question, result: Result, pages: list[Page]) -> Finished:
    own = Path(result.artifacts) if result.artifacts else None
    if own and not own.is_absolute():
        own = folder / own
    if own and (own / "report.json").exists():
        return _of_fathom(question, result, own)
    if not result.report:
        return Finished(question, result)
    text = (folder / result.report).read_text(encoding="utf-8")
    cited = read_markdown(text)
    addresses = [comparable(page.url) for page in pages]
    ids = source_ids(addresses)
    texts = {
        ids[address]: (SourceText(source_id=ids[address], url=page.url, title=page.title, kind="web", text=page.text),)
        for address, page in zip(addresses, pages, strict=True)
    }
    return Finished(
        question,
        result,
        tuple(f"{section.heading}\n{section.markdown}" for section in cited.sections),
        tuple(claims_of(cited.sections)),
        {source.source_id: source.url for source in cited.sources},
        texts if pages else None,
        len(cited.dangling),
    )


def _of_fathom(question: Question, result: Result, folder: Path) -> Finished:
    report = Report.model_validate_json((folder / "report.json").read_text(encoding="utf-8"))
    texts: dict[str, list[SourceText]] = {}
    for path in sorted(folder.glob("*__step*.json")):
        output = ToolOutput.model_validate_json(path.read_text(encoding="utf-8"))
        for text in output.results:
            texts.setdefault(text.source_id, []).append(text)
    for path in sorted(folder.glob("*__step*.txt")):
        whole = path.read_text(encoding="utf-8")
        for source in report.sources:
            texts.setdefault(source.source_id, []).append(source.with_text(whole))
    answer = answer_of(report)
    return Finished(
        question,
        result,
        tuple(f"{section.heading}\n{section.markdown}" for section in report.sections),
        tuple(claims_of(report.sections)),
        {source.source_id: source.url for source in report.sources},
        {source_id: tuple(found) for source_id, found in texts.items()},
        0,
        answer is not None and answer.answered.value == "no",
    )


def _runs_below(folder: Path, questions: Mapping[str, Question]) -> Iterator[Finished]:
    """Yield the finished runs of a store, a batch or a folder of one run."""
    if (folder / "results.jsonl").exists():  # of a batch, whose rows name their reports
        rows = [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").split("\n") if line]
        paths = [Path(row["report"]).parent / "result.json" for row in rows if row.get("report")]
    else:
        paths = sorted(folder.glob("**/result.json"))
    for path in paths:
        run = RunResult.model_validate_json(path.read_text(encoding="utf-8"))
        query = json.loads((path.parent / "run.json").read_text(encoding="utf-8"))["query"]
        question = questions.get(query) or Question(id=run.run_id[:8], question=query)
        metrics = run.metrics
        result = Result(
            id=question.id,
            status=RowStatus(run.status.value),
            artifacts=str(path.parent),
            answer=run.answer,
            llm_calls=metrics.llm_calls,
            tool_calls=metrics.tool_calls,
            tokens=metrics.prompt_tokens + metrics.completion_tokens,
            usd=metrics.cost_usd,
            seconds=metrics.seconds,
        )
        known = (path.parent / "report.json").exists() and run.status is not Ending.insufficient_evidence
        yield _of_fathom(question, result, path.parent) if known else Finished(question, result)
