"""`fathom worker`: run what is scheduled on a work pool, many runs in one process."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from typing import Annotated

import typer

from fathom.cli.exits import logged


def worker(
    *,
    pool: Annotated[str, typer.Option(metavar="NAME", help="Work pool to take runs from.")] = "fathom",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=200, help="Maximum concurrent runs.")] = 8,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of this worker in the Prefect UI.")] = "",
    drain_seconds: Annotated[
        float, typer.Option(metavar="S", min=0, help="Seconds to wait for runs in progress when the worker is stopped.")
    ] = 60,
    idle_seconds: Annotated[
        float, typer.Option(metavar="S", min=0, help="Stop after this many seconds without a run; 0: never.")
    ] = 0,
    attached: Annotated[
        bool, typer.Option(hidden=True, help="A line on stdin wakes it; once stdin is closed, it ends when idle.")
    ] = False,
) -> None:
    """Run the scheduled runs of a work pool, many in one process.

    `prefect worker start` gives each run its own process, which takes 3 to 4 seconds of processor time to start; both
    kinds of workers can serve the same pool. Ctrl-C or SIGTERM stops the worker: no new run starts, runs in progress
    get time to finish, and unfinished runs are then scheduled again for other workers. A second Ctrl-C stops it at
    once.

    The worker's environment must contain the keys of providers and FATHOM_ARTIFACTS.

    Example: fathom worker --limit 16
    """
    from fathom.flows.server import be_patient, ensure_api

    be_patient()
    ensure_api(_say)
    from fathom.flows.worker import Worker
    from fathom.flows.worker_process import attach, serve_until_stopped

    worker = Worker(pool, limit, name, _say, drain_seconds, idle_seconds=idle_seconds or math.inf)
    if attached:
        from fathom.flows import deep_research  # noqa: F401 - so that the first run need not wait for it

        attach(worker, sys.stdin.fileno())
    serve_until_stopped(worker)


def _say(line: str) -> None:
    from datetime import UTC, datetime

    if not logged(line):
        with suppress(OSError):  # the terminal of a server that was killed is gone; its runs go on
            typer.echo(f"{datetime.now(UTC):%H:%M:%S}  {line}", err=True)
