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
from fathom.flows.deep_research import deep_research, investigate
from fathom.flows.runs.endings import result_in
from fathom.models import RunResult
from fathom.run.engine import Engine, RunStart
from fathom.storage.lease import RESULTS
from fathom.storage.store import ArtifactStore
from fathom.tasks.auditing import session
from fathom.tasks.durable import outside_prefect
from fathom.tasks.ui import Display
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.audit_log import PENDING_FILE, AuditLog
from fathom.telemetry.tracing import describe_run, start_tracing
from fathom.tools.registry import configured_tools

__all__ = ["QUERY", "investigated", "research"]

QUERY = "How do tides form on moons with liquid methane seas?"


_OFFLINE = {"check_links": False}  # most sites of the stubs are on no network


async def research(root: Path | str, query: str = QUERY, run_key: str | None = None, **settings: Any) -> RunResult:
    """Research with the scripted model unless another is chosen, and little patience."""
    return await result_in(await deep_research(query, _settings(root, settings), run_key, return_state=True))


async def investigated(root: Path | str, query: str = QUERY, _before: Any = None, **settings: Any) -> RunResult:
    """Research as `research` does, without Prefect: a tenth of the time, and nothing can be resumed.

    `_before` is called with the engine before the run begins.
    """
    environment, asked, store = Environment.read(), _settings(root, settings), ArtifactStore(str(root))
    resolved = resolve(asked, environment, configured_tools(asked, environment, query))
    now, run_id = datetime.now(UTC).isoformat(timespec="seconds"), uuid.uuid4().hex
    own = f"{RESULTS}/{run_id}"
    await store.open_journal(f"{own}/journal/0001")
    start = RunStart(
        run_id=run_id,
        run_key=run_id,
        query=query,
        started=now,
        today=now[:10],
        settings=resolved,
        template=template_of(asked.template) if asked.template else None,
    )
    ledger, audit = await Ledger.open(resolved.budget, store, f"{own}/ledger"), AuditLog(store, f"{own}/{PENDING_FILE}")
    engine = Engine(start, store, environment, ledger, audit)
    start_tracing(environment)
    if _before:
        await _before(engine)
    with outside_prefect(_called):
        async with aclosing(engine), session(engine) as span:
            _run, _report, result = await investigate(engine, Display(shown=False))
            status, metrics = result.status.value, result.metrics
            describe_run(span, status, metrics)
            await audit.record(AuditType.session_completed, "system", status, metrics=metrics.model_dump(mode="json"))
    await store.close_journal()
    return result


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
