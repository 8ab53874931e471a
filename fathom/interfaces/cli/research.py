"""`fathom research`, `fathom ask` and `fathom resume`: a run that someone in a shell is waiting for."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fathom.config.environment import Environment, artifact_root
from fathom.errors import InvalidInput, UserError
from fathom.interfaces.cli.exits import loading
from fathom.interfaces.cli.options import Json, Mcp, Open, Quiet, Root, Run, given_options
from fathom.interfaces.cli.printing import line, one_line, only_searched, open_page, output, show_answer, show_summary
from fathom.interfaces.cli.runs import show_changed
from fathom.interfaces.cli.warm import leave_behind

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

    from fathom.changes.model import Changes
    from fathom.interfaces.cli.progress import RunWatcher
    from fathom.models import Report, RunResult
    from fathom.models.run import PhaseCost, Range
    from fathom.run.engine import Parent
    from fathom.storage.runs import StoredRun


def research(
    query: Annotated[str, typer.Argument(help="The question, in quotes.", show_default=False)],
    *,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Print the expected usage of the run without starting it.")
    ] = False,
    mcp: Mcp = None,
    run_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Key of the run; runs with the same key share finished calls.")
    ] = None,
    open_it: Open = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Research a question, print the answer and write a cited report.

    With --quiet, the command prints only the answer with its sources. Without a model, the report consists of
    quotations. Without --docs or a key for web search, the only source is the Python language reference.

    Example: fathom research "What did we decide about retries?" --docs notes/ --model openai/gpt-5-mini
    """
    with loading():
        from fathom.flows.preflight import check_request, estimated

    usual = {"people": {"clarify": "auto"}} if is_terminal(quiet=quiet, as_json=as_json) else {}
    settings = given_options().over_defaults(usual)
    if estimate:
        phases = estimated(query, settings)
        output(phases, show_estimate, as_json=as_json)
        return
    request = check_request(query, settings)

    def start() -> Awaitable[FlowRun]:
        from fathom.flows.execution import local

        return local.create(request.query, request.settings, run_key)

    follow(start, request.notices, searched=request.searched, open_it=open_it, quiet=quiet, as_json=as_json)


def resume(
    run: Run,
    *,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for the worker of a deployment.")] = False,
    mcp: Mcp = None,
    artifacts: Root = None,
    open_it: Open = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Finish a run that was interrupted, cancelled or failed.

    No finished call is repeated. A worker continues the run of a deployment; any other run continues here, even if it
    was started on another machine.

    Example: fathom resume 1a2b3c4d
    """

    def start() -> Awaitable[FlowRun]:
        from fathom.flows.execution import resuming

        return resuming.find(run, artifacts)

    def finish(flow_run: FlowRun, watch: RunWatcher) -> Awaitable[RunResult | None]:
        from fathom.flows.execution import resuming

        return resuming.finish(flow_run, watch.say, wait=not no_wait)

    follow(start, [], finish=finish, open_it=open_it, quiet=quiet, as_json=as_json)


def follow(
    start: Callable[[], Awaitable[FlowRun]],
    notices: Sequence[str],
    *,
    finish: Callable[[FlowRun, RunWatcher], Awaitable[RunResult | None]] | None = None,
    searched: str = "",  # as in `CheckedRequest`
    open_it: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Show a run's progress until `finish`, by default this process, has ended it; print its result, and exit."""
    from fathom.flows.server import ensure_api
    from fathom.interfaces.cli.progress import RunWatcher
    from fathom.telemetry.progress import listen

    run_id = address = ""

    async def work(watch: RunWatcher) -> RunResult | None:
        nonlocal run_id, address
        from fathom.flows.runs.asking import in_terminal
        from fathom.interfaces.cli.dialogue import Dialogue

        async with local.connected():
            flow_run = await start()
            run_id, address = str(flow_run.id), local.address(flow_run)
            watch.say(f"Run {run_id[:8]}  {address}")
            if finish:
                watch.say(f"Question: {one_line(flow_run.parameters['query'])}")
            terminal = Dialogue(watch.aside) if is_terminal(quiet=quiet, as_json=as_json) else None
            with listen(watch), in_terminal(terminal):
                return await (finish(flow_run, watch) if finish else local.execute(flow_run))

    logging.raiseExceptions = False  # the user need not know of a log line that cannot be sent
    try:
        # Whatever a library prints must not get between the results on stdout.
        with RunWatcher(quiet=quiet, progress=not as_json) as watch, redirect_stdout(sys.stderr):
            if searched:
                watch.warn(only_searched(searched))
            for notice in notices:
                watch.say(notice)
            ensure_api(watch.say)
            with loading():
                from fathom.flows.execution import local

            result = asyncio.run(work(watch))
    except BaseException as error:
        if run_id and not isinstance(error, UserError):
            error.add_note(f"the run can be continued: fathom resume {run_id}")
        raise
    if result is None:
        queued = json.dumps({"run_id": run_id, "status": "queued"})
        typer.echo(queued if as_json else f"Queued for a worker: {address}")
        return
    _show_result(result, address, open_it=open_it, quiet=quiet, as_json=as_json)
    leave_behind()
    raise typer.Exit(result.status.exit_code)


def _show_result(result: RunResult, address: str, *, open_it: bool, quiet: bool, as_json: bool) -> None:
    """Print the answer of a run that has ended, for a watch what changed, and how it ended; perhaps open its report."""
    from fathom.flows.runs.stored import changes_of, lacks_earlier, reference, report_of

    async def read() -> tuple[Report | None, Changes | None, bool]:
        return None if as_json else await report_of(result), await changes_of(result), await lacks_earlier(result)

    shown = reference(result, artifact_root())
    report, changes, is_first = asyncio.run(read())

    def show(_: object) -> None:
        if report:
            show_answer(report)
        if changes:
            line(("\nSince the run before: ", "bold"), f"{result.changes}.")
            show_changed(changes)
        if is_first:
            line("\nThis watch has no earlier report to compare with: its next run shows what has changed.")
        if quiet:
            _warn(result, "" if report else shown)
            return
        if report or changes:
            line("")
        show_summary(result, address, shown)

    compared = {"comparison": changes} if changes else {}
    output({**result.model_dump(mode="json"), **compared}, show, as_json=as_json)
    sys.stdout.flush()
    if open_it:
        open_page(result)


def _warn(result: RunResult, shown: str) -> None:
    """Say on stderr what a reader of the answer must know: what was not read, and without a report, why there is none.

    `shown` is what `fathom show` accepts for a run without a report.
    """
    for warning in result.warnings:
        typer.echo(f"fathom: {one_line(warning)}", err=True)
    if shown:
        said = f"; what comes closest: fathom show {shown}" if result.unanswered else ""
        typer.echo(f"fathom: {result.reason}{said}", err=True)


def is_terminal(*, quiet: bool, as_json: bool) -> bool:
    """Whether a person who can be asked sits at the terminal."""

    return not (quiet or as_json or Environment.read().log) and sys.stdin.isatty() and sys.stderr.isatty()


def show_estimate(phases: Sequence[PhaseCost]) -> None:
    """Print an estimate as a table."""
    from rich.console import Console

    from fathom.models.run import Range

    asks, pays = (any(p.model_calls.most for p in phases), any(p.usd is None or p.usd.most for p in phases))
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("phase")
    headings = (*(("model calls", "1,000 tokens") if asks else ()), *(("dollars",) if asks or pays else ()))
    for heading in ("tool calls", *headings):
        table.add_column(heading, justify="right")
    for phase in phases:
        cells = [_bounds(phase.tool_calls, ",.0f")]
        if asks:
            thousands = Range(phase.tokens.usual / 1000, phase.tokens.most / 1000)
            cells += [_bounds(phase.model_calls, ",.0f"), _bounds(thousands, ",.1f")]
        if asks or pays:
            cells.append("unknown" if phase.usd is None else _bounds(phase.usd, ",.3f"))
        table.add_row(phase.phase, *cells)
    Console(highlight=False).print(table)
    limit = "The budget limits the whole run." if asks else "--max-usd limits it."
    budget = limit if asks or pays else "No model is asked: the run costs nothing."
    line((f"\nUsual - maximum. {budget}", "dim"))


def _bounds(bounds: Range, form: str) -> str:
    return f"{bounds.usual:{form}} - {bounds.most:{form}}" if bounds.most else ""


def ask(
    run: Run,
    query: Annotated[str, typer.Argument(help="The question, in quotes.", show_default=False)],
    *,
    mcp: Mcp = None,
    open_it: Open = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask a question that follows up on a finished run.

    Fathom first searches what the earlier run read, and researches only what is missing. The question may refer to the
    earlier one. The run uses the earlier run's settings unless you set others. Each report names the other run.

    Example: fathom ask 1a2b3c4d "and in Europe?"
    """
    with loading():
        from fathom.flows.preflight import check_request
        from fathom.flows.runs.following import parent_of
        from fathom.flows.runs.stored import read_run

    async def found(stored: StoredRun) -> tuple[Parent, str]:
        store = stored.store
        if store_given and store.address() != artifact_root(store_given):
            raise InvalidInput(
                f"The run is stored in {store.address()}, and its follow-up must be stored there too.",
                next_step="leave out --artifacts",
            )
        return await parent_of(stored), store.address()

    usual = {"people": {"clarify": "auto"}} if is_terminal(quiet=quiet, as_json=as_json) else {}
    given = given_options()
    chosen = given.chosen(usual)
    store_given = chosen.pop("artifacts", None)
    parent, root = read_run(run, store_given, found)
    settings = given.checked({**parent.settings_with(chosen), "artifacts": root})
    request = check_request(query, settings, follow_up=not parent.refused)

    def start() -> Awaitable[FlowRun]:
        from fathom.flows.execution import local

        return local.create(request.query, request.settings, parent=parent.run_id)

    kept = ", ".join(f"{name} {one_line(str(value))}" for name, value in parent.settings.items() if name not in chosen)
    notices = [*([f"Settings taken from the run {parent.run_id[:8]}: {kept}"] if kept else []), *request.notices]
    follow(start, notices, searched=request.searched, open_it=open_it, quiet=quiet, as_json=as_json)
