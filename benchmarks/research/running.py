"""Running a benchmark: its questions as one batch of Fathom, which resumes, repeats nothing and keeps to a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from math import ceil
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.research.benchmark import SYSTEM, Benchmark
from benchmarks.research.outcome import file_name, write_outcome
from benchmarks.results import SYSTEM as SYSTEM_FILE
from benchmarks.results import Question, System, read_lines, read_system
from fathom.batch.folder import RESULTS
from fathom.batch.questions import read_questions
from fathom.config.given import settings_from
from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput
from fathom.flows.preflight import check_batch, estimated_batch
from fathom.models.run import BatchQuestion, BatchResult, BatchRow, PhaseCost
from fathom.storage.lease import result_key
from fathom.storage.store import BATCHES
from fathom.text.plain import counted

STORE, RUN_KEY = "store", "run_key"


@dataclass(frozen=True)
class Prepared:
    """A benchmark that can be run. `notices` are worth one line each."""

    benchmark: Benchmark
    questions: list[Question]
    asked: list[BatchQuestion]
    settings: ResearchSettings
    notices: list[str]
    system: System  # as it was asked for, so that the same command again finds the same
    out: Path


def prepare(benchmark: Benchmark, questions: Sequence[Question], out: Path, options: dict[str, Any]) -> Prepared:
    """Check that the questions can be researched, and that the folder has no results of other settings.

    Raises:
        UserError: they cannot, or it has.
    """
    settings = settings_from({**options, "mode": benchmark.mode, "artifacts": str(out.resolve() / STORE)})
    system = _system(benchmark, settings)
    _check_same(out, system)
    model = options.get("model") or ""
    keyed = [
        BatchQuestion(question=one.question, run_key=result_key("", f"{benchmark.name}-{one.id}-{model}".rstrip("-")))
        for one in questions
    ]
    lines = "".join(f"{one.model_dump_json(include={'question', 'run_key'})}\n" for one in keyed)
    asked = read_questions(lines, "jsonl", settings)
    settings, asked, notices = check_batch(settings, asked)
    return Prepared(benchmark, list(questions), asked, settings, notices, system, out)


def estimate(prepared: Prepared) -> list[PhaseCost]:
    """Return what all questions would use together, those that have finished too."""
    return estimated_batch(prepared.asked, prepared.settings)


def check_caps(phases: Sequence[PhaseCost], budget: dict[str, float], asked: int, at_once: int) -> None:
    """Check that what is not free has a cap, and that it pays for the questions asked at the same time.

    With less each would be cut short, which counts as researched, and so is never asked again.

    Raises:
        InvalidInput: it has none, or one that is too small.
    """
    usd = phases[-1].usd
    if usd and not usd.most:
        return
    if usd and "max_usd" in budget:
        together = min(asked, at_once)
        least = usd.usual / asked * together
        if budget["max_usd"] < least:
            said = (
                f"--max-usd {budget['max_usd']:g} is too little for {counted(together, 'question')} at the same time."
            )
            step = f"give --max-usd {ceil(least * 100) / 100:.2f} or more{', or a smaller --at-once' * (together > 1)}"
            raise InvalidInput(said, next_step=step)
    if budget:
        return
    if usd is None:
        said = "The price of these questions is not known, and nothing limits them."
        raise InvalidInput(said, next_step="give --max-calls or --max-tokens, or the price: --set prices=...")
    said = f"These questions cost about ${usd.usual:.2f}, at most ${usd.most:.2f}, and nothing limits them."
    raise InvalidInput(said, next_step=f"give a cap over all of them, such as --max-usd {max(usd.usual * 2, 0.01):.2f}")


def run(prepared: Prepared, budget: dict[str, float], *, at_once: int, quiet: bool, progress: bool) -> BatchResult:
    """Research the questions that have not finished, and write the results folder, also after an interruption.

    Raises:
        FathomError: the batch failed or was stopped; the same command continues it.
    """
    from fathom.interfaces.cli.batch import research_batch

    out, benchmark = prepared.out, prepared.benchmark
    out.mkdir(parents=True, exist_ok=True)
    key = _run_key(out, benchmark)
    request = {
        "settings": prepared.settings,
        "at_once": at_once,
        "budget": budget,
        "deployment": "deep-research/on-demand",
        "run_key": key,
    }
    (out / SYSTEM_FILE).write_text(f"{prepared.system.model_dump_json(indent=2)}\n", encoding="utf-8")
    try:
        return research_batch(prepared.asked, request, prepared.notices, quiet=quiet, progress=progress)
    except BaseException as error:
        error.add_note("to continue, run the same command")
        raise
    finally:
        rows = read_lines(out / STORE / BATCHES / key / RESULTS, BatchRow)
        if len(rows) == len(prepared.questions):
            write_outcome(out, benchmark, prepared.questions, rows)


def _run_key(out: Path, benchmark: Benchmark) -> str:
    """Return the run key of a folder's batch, drawn when the folder is new.

    Prefect returns the runs that it knows by this key wherever they are stored: also runs in another folder, with other
    settings, and in a folder that was removed.
    """
    path = out / RUN_KEY
    if not path.exists():
        path.write_text(result_key("", f"{file_name(benchmark.name)}-{uuid4().hex[:8]}"), encoding="utf-8")
    return path.read_text(encoding="utf-8")


def _system(benchmark: Benchmark, settings: ResearchSettings) -> System:
    given = settings.model_dump(mode="json", exclude_unset=True, exclude={"artifacts"})
    model = given.get("model") or ""
    versions = {SYSTEM: version("fathom-research")}
    return System(name=SYSTEM, set=benchmark.name, model=model, versions=versions, settings=given)


def _check_same(out: Path, system: System) -> None:
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"{out} is no folder.", next_step="choose another folder with --out")
    found = read_system(out)
    same = {"set", "model", "settings"}
    if found and found.model_dump(include=same) != system.model_dump(include=same):
        said = f"{out} has results of other settings: {found.set}, {found.model or 'no model'}, {found.settings}."
        raise InvalidInput(said, next_step="choose another folder with --out")
