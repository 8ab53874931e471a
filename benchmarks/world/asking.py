"""Questions of the closed world put to Fathom: each run in a process of a pool, its results kept as soon as it ends."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import fathom
from benchmarks.results import (
    QUESTIONS,
    REPORTS,
    RESULTS,
    SYSTEM,
    Question,
    Result,
    System,
    read_lines,
    read_system,
    write_lines,
)
from fathom.batch.questions import settings_of
from fathom.config.settings import ResearchSettings
from fathom.errors import FathomError, InvalidInput, ModelRejected, ModelUnreachable, UserError
from fathom.models import RunResult
from fathom.models.run import BatchQuestion, RowStatus

TOOLS = ["web_search", "web_extract", "fetch"]
"""Those that read the world and nothing else."""


def sources() -> str:
    """Return eight hex digits that stand for the code that answers: results of other code are not mixed with it."""
    read = hashlib.sha256()
    for path in sorted(Path(fathom.__file__).parent.rglob("*")):
        if path.suffix in (".py", ".md", ".toml"):
            read.update(path.read_bytes())
    return read.hexdigest()[:8]


def enter_world(address: str, cache: Path) -> None:
    """Have this process find the world: its names, its search service, and no other source."""
    look_up = socket.getaddrinfo

    def found(host: Any, *others: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        here = isinstance(name, str) and name.endswith(".example")
        return look_up("127.0.0.1" if here else host, *others, **named)

    socket.getaddrinfo = found
    os.environ |= {
        "TAVILY_API_KEY": "closed-world",
        "TAVILY_BASE_URL": address,
        "FATHOM_FETCH_ALLOW": "127.0.0.0/8",
        "FATHOM_CACHE": str(cache),
    }
    logging.disable(logging.WARNING)


def check(settings: Mapping[str, Any], root: str) -> None:
    """Check the settings before any question is asked with them.

    Raises:
        FathomError: they cannot be used.
    """
    from fathom.flows.preflight import check_settings

    asked = BatchQuestion(question="", settings=dict(settings))
    check_settings(settings_of(asked, ResearchSettings(artifacts=root)))


def ask_all(
    folder: Path,
    questions: Sequence[Question],
    system: System,
    settings: Mapping[str, Any],
    address: str,
    *,
    at_once: int,
    say: Callable[[Question, Result], object],
) -> list[Result]:
    """Ask the questions that the folder has no result of, keep each result as soon as it is there, and return all.

    Raises:
        InvalidInput: the folder holds results of another system or other settings.
        FathomError: the settings or the key of the model are wrong.
    """
    results = _open(folder, questions, system)
    left = [question for question in questions if question.id not in results]
    start = partial(enter_world, address, folder / "cache")
    pool = ProcessPoolExecutor(at_once, get_context("spawn"), initializer=start)
    try:
        asked = {pool.submit(_ask, folder, question, dict(settings)): question for question in left}
        for done in as_completed(asked):
            result = done.result()
            results[result.id] = result
            write_lines(folder / RESULTS, [results[name] for name in sorted(results)])
            say(asked[done], result)
    except BaseException:
        for child in active_children():  # the pool would first answer the questions that its processes have taken
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return [results[question.id] for question in questions]


def _open(folder: Path, questions: Sequence[Question], system: System) -> dict[str, Result]:
    """Return the results that a folder has, by id."""
    (folder / REPORTS).mkdir(parents=True, exist_ok=True)
    if (read_system(folder) or system) != system:
        said = f"{folder} holds results of another system, version or settings."
        raise InvalidInput(said, next_step="choose another folder with --out (make: OUT=)")
    (folder / SYSTEM).write_text(system.model_dump_json(indent=2) + "\n", encoding="utf-8")
    known = {one.id: one for one in [*read_lines(folder / QUESTIONS, Question), *questions]}
    write_lines(folder / QUESTIONS, known.values())
    return {one.id: one for one in read_lines(folder / RESULTS, Result) if one.status.finished}


def _ask(folder: Path, question: Question, settings: dict[str, Any]) -> Result:
    from tests.inprocess import investigated

    try:
        run: RunResult = asyncio.run(investigated(folder / "artifacts", query=question.question, **settings))
    except (UserError, ModelRejected, ModelUnreachable):
        raise  # no other question would fare better
    except FathomError as error:
        print(f"{question.id}: {error}", flush=True)
        return Result(id=question.id, status=RowStatus.failed)
    report = ""
    if run.report:
        report = f"{REPORTS}/{question.id}.md"
        (folder / report).write_text(Path(run.report).read_text(encoding="utf-8"), encoding="utf-8")
    metrics = run.metrics
    return Result(
        id=question.id,
        status=RowStatus(run.status.value),
        report=report,
        artifacts=str(Path(run.artifacts).relative_to(folder)),
        answer=run.answer,
        confidence=run.confidence,
        llm_calls=metrics.llm_calls,
        tool_calls=metrics.tool_calls,
        tokens=metrics.prompt_tokens + metrics.completion_tokens,
        usd=metrics.cost_usd,
        seconds=round(metrics.seconds, 2),
    )
