"""What a run is doing right now, for its screen. Never an input to the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "phase", "plan", "round", "step", "tool", "note", "model", "speed", "reflection", "section", "warning", "end"
]


@dataclass(frozen=True)
class Event:
    """Something that just finished; `step`, `round` and `section` are sent when they begin."""

    kind: Kind
    message: str  # one line for a person
    done: int = 0  # steps of the plan that are finished
    total: int = 0  # steps of the plan; 0 until it exists
    calls: int = 0  # of a `model` event, as are the next two
    tokens: int = 0
    cost_usd: float | None = 0.0  # None: price unknown


_listener: ContextVar[Callable[[Event], None] | None] = ContextVar("fathom_listener", default=None)


@contextmanager
def listen(callback: Callable[[Event], None]) -> Iterator[None]:
    """Send the events of runs started inside the block to a callback, in the thread of the run."""
    token = _listener.set(callback)
    try:
        yield
    finally:
        _listener.reset(token)


def publish(event: Event) -> None:
    """Send an event to the listener, if there is one."""
    if callback := _listener.get():
        callback(event)
