"""A run that somebody in a shell is waiting for: progress, the result, and how to go on when it is interrupted."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import typer

from fathom.errors import UserError

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

    from fathom.models import RunResult
    from flows.cli.screen import Watch


def follow(
    start: Callable[[], Awaitable[FlowRun]],
    finish: Callable[[FlowRun, Watch], Awaitable[RunResult | None]],
    notices: Sequence[str],
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    """Bring a run to its end under the user's eyes, say what came of it, and exit with its code."""
    # Not before a command needs them: `--help` is answered without.
    from fathom.telemetry.progress import listen
    from flows.cli.screen import Watch, summary
    from flows.preflight import artifact_root
    from flows.runs import reference
    from flows.server import ensure_api

    run_id = address = ""

    async def work(watch: Watch) -> RunResult | None:
        nonlocal run_id, address
        from flows import local

        flow_run = await start()
        run_id, address = str(flow_run.id), local.address(flow_run)
        watch.say(f"Run {run_id[:8]}  {address}")
        with listen(watch):
            return await finish(flow_run, watch)

    logging.raiseExceptions = False  # a log line that cannot be sent is not the user's affair
    try:
        # Whatever a library prints must not get between the results on stdout.
        with Watch(quiet=quiet) as watch, redirect_stdout(sys.stderr):
            for notice in notices:
                watch.say(notice)
            ensure_api(watch.say)
            result = asyncio.run(work(watch))
    except BaseException as error:
        if run_id and not isinstance(error, UserError):
            error.add_note(f"the run can be continued: fathom resume {run_id}")
        raise
    if result is None:
        scheduled = json.dumps({"run_id": run_id, "status": "scheduled"})
        typer.echo(scheduled if as_json else f"Scheduled for a worker: {address}")
        return
    if as_json:
        typer.echo(result.model_dump_json(indent=2))
    elif quiet and result.report:
        typer.echo(result.answer or result.report)
    elif quiet:
        typer.echo(result.reason, err=True)
    else:
        typer.echo(summary(result, address, reference(result, artifact_root())))
    raise typer.Exit(result.status.exit_code)
