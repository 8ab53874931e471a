"""What a run is doing right now, for its screen. Never an input to the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Literal

from fathom.config.caps import Budget
from fathom.models import Account, Draft, Plan, StepStatus
from fathom.models.run import BatchRow
from fathom.telemetry.audit_events import AuditEvent

Kind = Literal[
    "phase",
    "begin",
    "end",
    "plan",
    "step",
    "tool",
    "spent",
    "speed",
    "reflection",
    "remark",
    "warning",
    "draft",
    "recorded",
    "batch",
]


@dataclass(frozen=True)
class Event:
    """Something that happens in a run: a phase begins, which lasts until the next one, or something has finished.

    A phase and what is being done in it are named from their beginning: nothing takes long without a name.
    """

    kind: Kind
    message: str = ""  # one line for a person
    key: int = 0  # of `begin` and `end`: what is being done, of several things at once
    plan: Plan | None = None  # of `plan`: with the steps' statuses
    step_id: str = ""  # of `step`, as is the next one
    status: StepStatus | None = None
    sources: tuple[str, ...] = ()  # of `tool`: the ids of those that it returned
    spent: Account | None = None  # of `spent`: by all attempts of the run, as are the next two
    caps: Budget | None = None
    priced: bool = True  # whether the cost of the last call is known
    draft: Draft | None = None  # of `draft`: takes the place of the one before at its position
    recorded: AuditEvent | None = None  # of `recorded`: what was added to the run's audit log
    rows: tuple[BatchRow, ...] = ()  # of `batch`: the questions that changed; the first time, all of them


_listener: ContextVar[Callable[[Event], None] | None] = ContextVar("fathom_listener", default=None)
_keys = count(1)


@contextmanager
def listen(callback: Callable[[Event], None]) -> Iterator[None]:
    """Send the events of runs started inside the block to a callback, in the thread of the run.

    Who listens already goes on hearing them.
    """
    outer = _listener.get()

    def both(event: Event) -> None:
        if outer:
            outer(event)
        callback(event)

    token = _listener.set(both)
    try:
        yield
    finally:
        _listener.reset(token)


def publish(event: Event) -> None:
    """Send an event to the listener, if there is one."""
    if callback := _listener.get():
        callback(event)


def phase(message: str) -> None:
    """Say what the run does from now on."""
    publish(Event("phase", message))


@contextmanager
def doing(message: str) -> Iterator[None]:
    """Say what is being done while the block runs, beside other things."""
    key = next(_keys)
    publish(Event("begin", message, key=key))
    try:
        yield
    finally:
        publish(Event("end", message, key=key))
