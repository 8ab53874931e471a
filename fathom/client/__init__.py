"""Python clients for a Fathom server, and the shapes of its requests and answers."""

from fathom.client.client import AsyncFathom, Fathom
from fathom.client.following import AsyncEvents, Events, FinishedRun
from fathom.client.shapes import EventType, Run, RunEvent, RunSummary
from fathom.models import RunState

__all__ = [
    "AsyncEvents",
    "AsyncFathom",
    "EventType",
    "Events",
    "Fathom",
    "FinishedRun",
    "Run",
    "RunEvent",
    "RunState",
    "RunSummary",
]
