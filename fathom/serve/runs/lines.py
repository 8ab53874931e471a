"""A run as the list knows it before its result is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from prefect.client.schemas.objects import FlowRun

from fathom.client.shapes import RunState


@dataclass(frozen=True)
class Line:
    """A run of the list. `created` is ISO 8601 in UTC, down to the microsecond, so that its text can be ordered.

    `flow_run` is there while the run has not ended, and `state` once it has.
    """

    run_id: str
    run_key: str
    created: str
    question: str
    parent: str = ""
    watch: str = ""
    folder: str = ""
    tags: tuple[str, ...] = ()
    flow_run: FlowRun | None = None
    state: RunState | None = None
    ended: str | None = None

    @property
    def order(self) -> tuple[str, str]:
        """Its place in the list, which never changes while Prefect knows the run."""
        return self.created, self.run_id

    def with_folder(self, folder: str) -> Line:
        """Return the same run with its folder."""
        return replace(self, folder=folder)


def text(value: Any) -> str:
    """Return a value of a manifest or parameter as text; nothing for one that is not there."""
    return str(value) if value else ""
