"""`fathom research` and `fathom resume`: a run that someone in a shell is waiting for."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from fathom.cli.options import Corpora, Json, Mcp, Open, Quiet, Root, Run, Set, Template, checked, chosen
from fathom.cli.printing import line, open_page, output, show_summary

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

    from fathom.cli.watch import Watch
    from fathom.models import RunResult
    from fathom.run.estimate import Bounds, PhaseEstimate


def research(
    query: Annotated[str, typer.Argument(help="The question, in quotes.", show_default=False)],
    *,
    docs: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="File or folder to read (txt md rst html pdf docx yaml ...); repeatable."),
    ] = None,
    corpus: Corpora = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Model for every role, such as openai/gpt-5-mini. [FATHOM_MODEL]"),
    ] = None,
    role_model: Annotated[
        list[str] | None, typer.Option(metavar="ROLE=MODEL", help="Model for one role; repeatable.")
    ] = None,
    fallback_model: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help="Model to use when the main one is unavailable; repeatable."),
    ] = None,
    model_seconds: Annotated[
        float | None,
        typer.Option(metavar="S", help="Seconds without a token before a request is abandoned (default: 120)."),
    ] = None,
    model_at_once: Annotated[
        int | None,
        typer.Option(metavar="N", help="Maximum concurrent model requests (default: 8; 1 for a small server)."),
    ] = None,
    template: Template = None,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="How thorough: quick, standard (default) or deep.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option(metavar="NAME", help="Output: report (default) or answer (at most 140 characters).")
    ] = None,
    effort: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How much of the profile to use. auto (default): less for simple questions; fixed: all.",
        ),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(metavar="N", help="Number of research rounds, 1 to 5 (default: by profile).")
    ] = None,
    breadth: Annotated[
        int | None, typer.Option(metavar="N", help="Tool calls per decision, 1 to 10 (default: by profile).")
    ] = None,
    summary_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", help="Approximate note length per source in tokens, 100 to 1,000 (default: 500)."),
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Use only these tools or groups, such as default,scholarly."),
    ] = None,
    search: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Search with these vendors, such as brave,tavily.")
    ] = None,
    search_mode: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="first (default): ask the next vendor if one fails or finds nothing. all: ask all."
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not use cached search results and pages.")] = False,
    max_usd: Annotated[
        float | None, typer.Option(metavar="USD", help="Maximum cost of the run (default: 5 if all prices are known).")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum tokens sent and received (default: 3,000,000).")
    ] = None,
    max_calls: Annotated[int | None, typer.Option(metavar="N", help="Maximum model requests (default: 500).")] = None,
    max_seconds: Annotated[
        float | None, typer.Option(metavar="S", help="Maximum working time in seconds (default: no limit).")
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL=IN,OUT[,CACHED]", help="Model price in dollars per million tokens; repeatable."),
    ] = None,
    search_price: Annotated[
        list[str] | None, typer.Option(metavar="VENDOR=USD", help="Price of one search in dollars; repeatable.")
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Print the expected usage of the run without starting it.")
    ] = False,
    clarify: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN", help="When to ask you for clarification: never, auto (default in a terminal) or always."
        ),
    ] = None,
    approve: Annotated[
        str | None, typer.Option(metavar="WHAT", help="What you must approve first: plan, report or never (default).")
    ] = None,
    wait_minutes: Annotated[
        float | None, typer.Option(metavar="N", help="Minutes to wait for your answer outside a terminal (default: 5).")
    ] = None,
    setting: Set = None,
    mcp: Mcp = None,
    artifacts: Root = None,
    run_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Key of the run; runs with the same key share finished calls.")
    ] = None,
    open_it: Open = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Research a question and write a cited report.

    Without a model, the report consists of quotations. Without --docs or a key for web search, the only source is
    the Python language reference.

    Example: fathom research "What did we decide about retries?" --docs notes/ --model openai/gpt-5-mini
    """
    from fathom.config.inputs import names_in, parse_prices, parse_role_models, parse_search_prices
    from fathom.flows.preflight import check_request, estimated

    options = {
        "docs": docs,
        "corpora": corpus,
        "model": model,
        "role_models": parse_role_models(role_model or []),
        "fallback_models": fallback_model,
        "model_calls.seconds": model_seconds,
        "model_calls.at_once": model_at_once,
        "template": template,
        "profile": profile,
        "mode": mode,
        "effort": effort,
        "depth": depth,
        "breadth": breadth,
        "compression.summary_tokens": summary_tokens,
        "tools": names_in(tools),
        "search": names_in(search),
        "search_mode": search_mode,
        "fresh": fresh,
        "budget.max_usd": max_usd,
        "budget.max_tokens": max_tokens,
        "budget.max_calls": max_calls,
        "budget.max_seconds": max_seconds,
        "prices": parse_prices(price or []),
        "search_prices": parse_search_prices(search_price or []),
        "people.clarify": clarify,
        "people.approve": approve,
        "people.wait_minutes": wait_minutes,
        "artifacts": artifacts,
    }
    usual = {"people": {"clarify": "auto"}} if is_terminal(quiet=quiet, as_json=as_json) else {}
    settings = checked(chosen(options, setting, usual), options, setting)
    if estimate:
        phases = estimated(query, settings)
        output([named(phase) for phase in phases] if as_json else phases, show_estimate, as_json=as_json)
        return
    request = check_request(query, settings)

    def start() -> Awaitable[FlowRun]:
        from fathom.flows.runs import local

        return local.create(request.query, request.settings, run_key)

    def finish(flow_run: FlowRun, _watch: Watch) -> Awaitable[RunResult]:
        from fathom.flows.runs import local

        return local.execute(flow_run)

    follow(start, finish, request.notices, open_it=open_it, quiet=quiet, as_json=as_json)


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
        from fathom.flows.runs import resuming

        return resuming.find(run, artifacts)

    def finish(flow_run: FlowRun, watch: Watch) -> Awaitable[RunResult | None]:
        from fathom.flows.runs import resuming

        return resuming.finish(flow_run, watch.say, wait=not no_wait)

    follow(start, finish, [], open_it=open_it, quiet=quiet, as_json=as_json)


def follow(
    start: Callable[[], Awaitable[FlowRun]],
    finish: Callable[[FlowRun, Watch], Awaitable[RunResult | None]],
    notices: Sequence[str],
    *,
    open_it: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Show the progress of a run, print its result, and exit with its code."""
    import asyncio
    import logging

    from fathom.cli.watch import Watch
    from fathom.errors import UserError
    from fathom.flows.preflight import artifact_root
    from fathom.flows.runs.stored import reference
    from fathom.flows.server import ensure_api
    from fathom.telemetry.progress import listen

    run_id = address = ""

    async def work(watch: Watch) -> RunResult | None:
        nonlocal run_id, address
        from fathom.cli.dialogue import Dialogue
        from fathom.flows.asking import in_terminal
        from fathom.flows.runs import local

        flow_run = await start()
        run_id, address = str(flow_run.id), local.address(flow_run)
        watch.say(f"Run {run_id[:8]}  {address}")
        terminal = Dialogue(watch.aside) if is_terminal(quiet=quiet, as_json=as_json) else None
        with listen(watch), in_terminal(terminal):
            return await finish(flow_run, watch)

    logging.raiseExceptions = False  # the user need not know of a log line that cannot be sent
    try:
        # Whatever a library prints must not get between the results on stdout.
        with Watch(quiet=quiet, progress=not as_json) as watch, redirect_stdout(sys.stderr):
            for notice in notices:
                watch.say(notice)
            ensure_api(watch.say)
            result = asyncio.run(work(watch))
    except BaseException as error:
        if run_id and not isinstance(error, UserError):
            error.add_note(f"the run can be continued: fathom resume {run_id}")
        raise
    if result is None:
        queued = json.dumps({"run_id": run_id, "status": "queued"})
        typer.echo(queued if as_json else f"Queued for a worker: {address}")
        return
    if quiet and not as_json:
        typer.echo(result.answer or result.report or result.reason, err=not result.report)
    else:
        shown = reference(result, artifact_root())
        output(result, lambda result: show_summary(result, address, shown), as_json=as_json)
    if open_it:
        open_page(result)
    raise typer.Exit(result.status.exit_code)


def is_terminal(*, quiet: bool, as_json: bool) -> bool:
    """Whether somebody who can be asked sits there."""
    from fathom.config.environment import Environment

    return not (quiet or as_json or Environment.read().log) and sys.stdin.isatty() and sys.stderr.isatty()


def named(row: Any) -> Any:
    """Return a named tuple, and those in it, as a mapping."""
    return {name: named(value) for name, value in row._asdict().items()} if hasattr(row, "_asdict") else row


def show_estimate(phases: Sequence[PhaseEstimate]) -> None:
    """Print an estimate as a table."""
    from rich.console import Console

    from fathom.run.estimate import Bounds

    asks, pays = (any(p.model_calls.most for p in phases), any(p.usd is None or p.usd.most for p in phases))
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("phase")
    headings = (*(("model calls", "1,000 tokens") if asks else ()), *(("dollars",) if asks or pays else ()))
    for heading in ("tool calls", *headings):
        table.add_column(heading, justify="right")
    for phase in phases:
        cells = [_bounds(phase.tool_calls, ",.0f")]
        if asks:
            thousands = Bounds(phase.tokens.usual / 1000, phase.tokens.most / 1000)
            cells += [_bounds(phase.model_calls, ",.0f"), _bounds(thousands, ",.1f")]
        if asks or pays:
            cells.append("unknown" if phase.usd is None else _bounds(phase.usd, ",.3f"))
        table.add_row(phase.phase, *cells)
    Console(highlight=False).print(table)
    limit = "The budget limits the whole run." if asks else "--max-usd limits it."
    budget = limit if asks or pays else "No model is asked: the run costs nothing."
    line((f"\nUsual - maximum. {budget}", "dim"))


def _bounds(bounds: Bounds, form: str) -> str:
    return f"{bounds.usual:{form}} - {bounds.most:{form}}" if bounds.most else ""
