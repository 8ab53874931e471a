"""What is counted: three runs with a scripted model, and questions over a handbook and the closed world without one.

Each function returns counts by name. The same code gives the same counts on every machine, however busy; only sizes in
bytes differ by a little, since durations and dates have different lengths.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import Question, System, read_lines
from fathom.models import Report, RunResult, Verdict
from fathom.text.citations import cited_ids

Counts = dict[str, int]

DATA = Path(__file__).parent.parent / "data"
WORLD_QUESTIONS = 16  # one of each kind


def survey() -> Counts:
    """Count what a report takes and has: three steps, two rounds."""
    return _scripted()


def short_answer() -> Counts:
    """Count what an answer of one sentence takes and has."""
    return _scripted(mode="answer")


def long_page() -> Counts:
    """Count what a page of 200 kB takes and gives, a table whose last row alone has a fact, and a short page."""
    from tests.inprocess import QUERY
    from tests.stubs import long_table

    planted = {"https://atlas.example/table": long_table(200_000, QUERY)}
    return _scripted({"planted": planted, "results": 2, "without_raw": 0, "steps": 1, "breadth": 1}, depth=1)


def _scripted(providers: Mapping[str, Any] | None = None, **settings: Any) -> Counts:
    from tests.inprocess import investigated
    from tests.stubs import FACT, Settings, serving

    with tempfile.TemporaryDirectory() as folder, serving(Settings(**(providers or {}))) as stubs:
        isolate(Path(folder), stubs.env)
        run = asyncio.run(investigated(Path(folder, "store"), **settings))
        prompts = [record.usage["prompt_tokens"] for record in stubs.calls("llm")]
        written = json.dumps([record.body for role in ("section", "answer") for record in stubs.calls(role)])
        return {
            "model calls": len(prompts),
            "prompt tokens": sum(prompts),
            "largest prompt, tokens": max(prompts),
            "completion tokens": run.metrics.completion_tokens,
            "facts for the writer": len(set(FACT.findall(written))),
            "tool requests": len(stubs.calls("search")) + len(stubs.calls("extract")),
            **_kept(run),
        }


def _kept(run: RunResult) -> Counts:
    """Count what a run has stored, and what its report claims."""
    folder = Path(run.artifacts)
    files = [path for path in folder.rglob("*") if path.is_file()]
    report = Report.model_validate_json((folder / "report.json").read_text(encoding="utf-8"))
    return {
        "files": len(files),
        "bytes stored": sum(path.stat().st_size for path in files),
        "claims": len(report.claims),
        "claims supported": sum(claim.verdict is Verdict.supported for claim in report.claims),
        "citations": sum(len(cited_ids(section.markdown)) for section in report.sections),
        "sources cited": len(report.sources),
    }


def documents() -> Counts:
    """Count the right answers, refusals and claims over a handbook of eight files, without a model."""
    questions = read_lines(DATA / "handbook.jsonl", Question)
    return _without_model(questions, {"tools": ["documents"], "docs": [str(DATA / "handbook")]}, address="")


def world() -> Counts:
    """Count the right answers, refusals and claims of the closed world, without a model."""
    from benchmarks.world.asking import TOOLS
    from benchmarks.world.questions import all_questions, in_turn
    from benchmarks.world.searching import serving

    with serving() as address:
        questions = in_turn(all_questions())[:WORLD_QUESTIONS]
        return _without_model(questions, {"tools": TOOLS}, address)


def _without_model(questions: Sequence[Question], settings: Mapping[str, object], address: str) -> Counts:
    from benchmarks.scoring.measures import score
    from benchmarks.scoring.reading import read_runs
    from benchmarks.world.asking import ask_all

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        isolate(root, {})
        chosen = {"model": None, **settings}
        results = ask_all(
            root, questions, System(name="fathom", set="guard"), chosen, address, at_once=1, say=lambda *_: None
        )
        scores = [score(run) for run in read_runs(root).finished]
        paths = (root / "artifacts").rglob("report.json")
        reports = [path.read_text(encoding="utf-8").replace(str(DATA), "") for path in paths]  # where it lies differs
        return {
            "right answers": sum(one.right is True for one in scores),
            "right refusals": sum(one.refused is True for one in scores),
            "wrong refusals": sum(one.refused_wrongly is True for one in scores),
            "false statements": sum(one.false_facts for one in scores),
            "claims": sum(one.claims for one in scores),
            "claims alike": round(sum((one.alike or 0.0) * one.claims for one in scores)),
            "invented citations": sum(one.invented or 0 for one in scores),
            "tool calls": sum(one.tool_calls or 0 for one in results),
            "bytes of reports": sum(len(text.encode()) for text in reports),
        }


def isolate(home: Path, variables: Mapping[str, str]) -> None:
    """Keep what the user has set, stored and cached out of the measurement."""
    for name in [name for name in os.environ if name.startswith(("FATHOM_", "PREFECT_"))]:
        del os.environ[name]
    os.environ |= {"HOME": str(home), "PREFECT_HOME": str(home / ".prefect"), "FATHOM_CACHE": str(home / "cache")}
    os.environ |= variables
    logging.disable(logging.WARNING)


MEASUREMENTS: Mapping[str, Callable[[], Counts]] = {
    "survey": survey,
    "short answer": short_answer,
    "long page": long_page,
    "documents": documents,
    "world": world,
}
