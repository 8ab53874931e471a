"""Log lines as JSON, and the warnings of a run, one per cause."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber, guard_logs
from fathom.errors import InvalidInput
from fathom.telemetry.progress import Event, publish
from fathom.telemetry.tracing import current


class JsonFormatter(logging.Formatter):
    """Writes a record as one line: `time` (UTC), `level`, `logger`, `message`, the ids, and `error`, a traceback.

    `call_id` is the id of the call's event in the audit log and of its span, `trace_id` the id of its trace.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        span = current()
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "run_id": getattr(record, "flow_run_id", None),  # set by Prefect's loggers
            **(span.ids if span else {}),
            "trace_id": span.trace_id if span else None,
            "error": record.exc_text,
        }
        return json.dumps({name: value for name, value in fields.items() if value})


class JsonHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes JSON to the current stderr.

    It can also stand in for Prefect's own handler, in processes that begin before Fathom is imported:
    `PREFECT_LOGGING_HANDLERS_CONSOLE_CLASS=fathom.telemetry.logs.JsonHandler`. Prefect's configuration then passes
    colours and a formatter, which it ignores.
    """

    def __init__(self, **_options: object) -> None:
        super().__init__()
        self.formatter = JsonFormatter()

    def setFormatter(self, fmt: logging.Formatter | None) -> None:
        """Ignore the formatter: the handler keeps its own."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        self.stream = sys.stderr
        super().emit(record)


def start_logs(environment: Environment) -> bool:
    """Write the log of this process as JSON if the environment asks for it; return whether it does.

    Prefect keeps existing handlers of the root logger; handlers that Prefect has set are replaced.

    Raises:
        InvalidInput: the environment asks for another format.
    """
    if environment.log not in ("", "json"):
        raise InvalidInput(f"FATHOM_LOG is {environment.log!r}.", next_step="set it to json, or unset it")
    root = logging.getLogger()
    if environment.log and not any(isinstance(handler, JsonHandler) for handler in root.handlers):
        guard_logs(Scrubber(environment.secrets))
        root.handlers = [JsonHandler()]
        logging.getLogger("fathom").setLevel(logging.INFO)
        logging.captureWarnings(True)
    return bool(environment.log)


class Warnings:
    """Shows a warning when its cause is new, and logs each."""

    def __init__(self) -> None:
        self._causes = set[tuple[str, ...]]()

    def warn(self, log: logging.Logger | logging.LoggerAdapter[Any], message: str, *cause: str) -> None:
        """Log a message, and show it unless one of the same cause was shown: then it is logged as information."""
        new = self.first(*cause)
        log.log(logging.WARNING if new else logging.INFO, "%s", message)
        if new:
            publish(Event("warning", message))

    def first(self, *cause: str) -> bool:
        """Whether a cause is new; from now on it is not."""
        new = cause not in self._causes
        self._causes.add(cause)
        return new
