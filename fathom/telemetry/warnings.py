"""Warnings of a run: one a cause. What happens again and again is logged, and not shown again."""

from __future__ import annotations

import logging
from typing import Any

from fathom.telemetry.progress import Event, publish


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
