"""Whole runs in the test's own process: on the session's Prefect server, or, where it does not matter, without it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect.tasks import Task

from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.config.groups import ReportSettings
from fathom.config.settings import ResearchSettings, resolve
from fathom.config.templates import template_of
from fathom.flows.deep_research import conclude, deep_research, investigate
from fathom.flows.runs.endings import result_in
from fathom.models import RunResult
from fathom.run.engine import Engine, RunStart
from fathom.storage.lease import RESULTS, journals_of
from fathom.storage.store import ArtifactStore
from fathom.tasks.auditing import session
from fathom.tasks.durable import Recorded, outside_prefect, recorded_task, storing
from fathom.tasks.ui import Display
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.audit_log import PENDING_FILE, AuditLog
from fathom.telemetry.tracing import describe_run, start_tracing
from fathom.tools.registry import configured_tools

__all__ = ["LINKS_CHECKED", "QUERY", "answer_from", "investigated", "kept", "research"]

QUERY = "How do tides form on moons with liquid methane seas?"


_OFFLINE = {"check_links": False}  # most sites of the stubs are on no network
LINKS_CHECKED = {"check_links": True}  # as by the command line, for what is compared with its runs


async def research(root: Path | str, query: str = QUERY, run_key: str | None = None, **settings: Any) -> RunResult:
    """Research with the scripted model unless another is chosen, and little patience."""
    return await result_in(await deep_research(query, _settings(root, settings), run_key, return_state=True))


async def investigated(root: Path | str, query: str = QUERY, _before: Any = None, **settings: Any) -> RunResult:
    """Research as `research` does, without Prefect: a tenth of the time, and nothing is kept but the run's folder.

    `_before` is called with the engine before the run begins.
    """
    run_id, store = uuid.uuid4().hex, ArtifactStore(str(root))
    start = _start(run_id, run_id, query, _settings(root, settings))
    await store.open_journal(journals_of(start.run_key))
    return await _investigated(start, store, _called, _before)


async def answer_from(folder: Path, files: Mapping[str, str], query: str) -> str:
    """Return what a report without a model answers from some files, by their names."""
    docs = folder / "docs"
    docs.mkdir()
    for name, text in files.items():
        (docs / name).write_text(text, encoding="utf-8")
    result = await investigated(folder / "runs", query=query, model=None, tools=["documents"], docs=[str(docs)])
    return Path(result.artifacts, "report.md").read_text(encoding="utf-8").partition("**How sure:**")[0]


async def kept(root: Path | str, query: str = QUERY, run_id: str = "", run_key: str = "", **settings: Any) -> RunResult:
    """Research without Prefect, and keep in the store what its tasks do.

    The run can be replayed, verified, followed up and listed; another one with its id or key takes up its calls.
    """
    run_id = run_id or uuid.uuid4().hex
    run_key = run_key or run_id
    store = ArtifactStore(str(root))
    await store.open_journal(journals_of(run_key))
    recorded = storing(store, run_key)
    with outside_prefect(recorded):
        start = await _begun(run_id, run_key, query, _settings(root, settings))
    return await _investigated(start, store, recorded)


@recorded_task(name="begin", run_name="start")
async def _begun(run_id: str, run_key: str, query: str, settings: ResearchSettings) -> RunStart:
    return _start(run_id, run_key, query, settings)


def _start(run_id: str, run_key: str, query: str, asked: ResearchSettings) -> RunStart:
    environment = Environment.read()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return RunStart(
        run_id=run_id,
        run_key=run_key,
        query=query,
        started=now,
        today=now[:10],
        settings=resolve(asked, environment, configured_tools(asked, environment, query)),
        template=template_of(asked.template) if asked.template else None,
    )


async def _investigated(start: RunStart, store: ArtifactStore, recorded: Recorded, before: Any = None) -> RunResult:
    environment, own = Environment.read(), f"{RESULTS}/{start.run_key}"
    ledger = await Ledger.open(start.settings.budget, store, f"{own}/ledger")
    engine = Engine(start, store, environment, ledger, AuditLog(store, f"{own}/{PENDING_FILE}"))
    start_tracing(environment)
    if before:
        await before(engine)
    with outside_prefect(recorded):
        async with aclosing(engine), session(engine) as span:
            run, report, result = await investigate(engine, Display(shown=False))
            status, metrics = result.status.value, result.metrics
            describe_run(span, status, metrics)
            told = metrics.model_dump(mode="json")
            await engine.audit.record(AuditType.session_completed, "system", status, metrics=told)
        if recorded is _called:
            await store.close_journal()
            return result
        return await conclude(engine, run, report, result)


def _settings(root: Path | str, chosen: Mapping[str, Any]) -> ResearchSettings:
    patience = {"seconds": 5, "backoff_seconds": 0.01}
    asked = ResearchSettings.model_validate(
        {"artifacts": str(root), "model": "openai/stub", "model_calls": patience, **chosen}
    )
    given = asked.report.model_dump(exclude_unset=True)
    return asked.model_copy(update={"report": ReportSettings(**{**_OFFLINE, **given})})


async def _called(task: Task[Any, Any], inputs: Mapping[str, Any]) -> Any:
    """Give a recorded task its result by doing it."""
    return await task.fn(**inputs)
