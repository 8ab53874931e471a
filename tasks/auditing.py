"""The audit log on Prefect's side: each event becomes a sentence in the run's log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fathom.errors import FathomError
from fathom.run.engine import Engine
from fathom.tasks.durable import run_logger
from fathom.tasks.sentences import sentence_of
from fathom.telemetry.audit_events import AuditEvent, AuditType
from fathom.telemetry.tracing import Span, run_span

# A run page with a line for every source and every attempt would hide the rest.
_LEVELS = {
    AuditType.llm_called: logging.DEBUG,
    AuditType.source_added: logging.DEBUG,
    AuditType.reflection_completed: logging.DEBUG,  # the critic's reasons are logged
    AuditType.budget_warning: logging.WARNING,
    AuditType.error_occurred: logging.WARNING,
}


def log_event(event: AuditEvent) -> None:
    """Write an event to the log of the task or flow that recorded it; an `AuditLog` is given this function."""
    run_logger().log(_LEVELS.get(event.type, logging.INFO), "%s", sentence_of(event))


class _Routine(logging.Filter):
    """Leaves out Prefect's line of each task that finished as it should; the run's graph shows them all."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno != logging.INFO or not str(record.msg).startswith("Finished in state ")


class _Suspended(logging.Filter):
    """Lowers Prefect's log line about a run that waits for a person: it is not an error."""

    def filter(self, record: logging.LogRecord) -> bool:
        if str(record.msg).startswith("Finished in state Suspended("):
            record.levelno, record.levelname = logging.INFO, "INFO"
        return True


_routine, _suspended = _Routine(), _Suspended()


def quieten_tasks() -> None:
    """Keep a line for every finished task out of the run's log, and the red of an error off a run that waits."""
    logging.getLogger("prefect.task_runs").addFilter(_routine)
    logging.getLogger("prefect.flow_runs").addFilter(_suspended)


@asynccontextmanager
async def session(engine: Engine) -> AsyncIterator[Span]:
    """Record the start and the end of an attempt at the run; events recorded inside are part of it,
    and so are all spans.
    """
    start, audit = engine.start, engine.audit
    kind = AuditType.session_resumed if await audit.exists() else AuditType.session_created
    event = await audit.record(
        kind,
        "user",
        start.query,
        run_id=start.run_id,
        run_key=start.run_key,
        models={role.value: model.model for role, model in start.settings.role_models.items()},
        tools=start.settings.tools,
        budget=start.settings.budget.model_dump(mode="json"),
        **({"searched": start.searched} if start.searched else {}),
        **({"parent": start.parent.run_id, "understood": start.understood} if start.parent else {}),
    )
    with audit.under(event), run_span(event, start.run_id, start.run_key) as span:
        try:
            yield span
        except asyncio.CancelledError:
            await audit.record(AuditType.session_completed, "system", "stopped", status="stopped")
            raise
        except FathomError as error:
            await audit.record(AuditType.error_occurred, "system", error.message, code=error.code)
            await audit.record(AuditType.session_completed, "system", "failed", status="failed")
            raise
