"""The `fathom` command.

Nothing heavy is imported before a command needs it: `--help` answers at once, and bad input is found without Prefect.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import json
import sys
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.attended import follow
from flows.cli.checking import commands
from flows.cli.exits import arguments, exits, show_where
from flows.cli.exporting import commands as exports
from flows.cli.options import Json, Quiet, Root

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

    from fathom.models import RunResult
    from flows.cli.screen import Watch
    from flows.runs import StoredRun

app = typer.Typer(
    help="Turn a question into a cited, checkable report.\n\n"
    'Start with: fathom research "How does Python look up an attribute on an instance?"',
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(commands)
app.add_typer(exports)


def main() -> None:
    """Run the command line and exit; `flows.cli.exits` says with which codes."""
    # Thousands of modules live until the end: collecting them over and over takes a third of the time it takes to
    # import them, and a second at exit.
    gc.set_threshold(10_000, 10, 10)
    atexit.register(gc.freeze)
    with exits():
        # Not by calling `app`, which puts a hook of its own in the place of ours.
        command = typer.main.get_command(app)
        with command.make_context("fathom", arguments() or ["--help"]) as context:
            command.invoke(context)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fathom {version('fathom-research')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an unexpected error comes from.")] = False,
) -> None:
    if debug:
        sys.excepthook = show_where


@app.command()
def research(
    query: Annotated[str, typer.Argument(help="The question, in quotes.", show_default=False)],
    *,
    docs: Annotated[
        list[str] | None,
        typer.Option("--docs", metavar="PATH", help="File or folder (txt md rst html pdf docx); repeatable."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Model of all roles, such as openai/gpt-5-mini. [FATHOM_MODEL]")
    ] = None,
    role_model: Annotated[
        list[str] | None,
        typer.Option("--role-model", metavar="ROLE=MODEL", help="Model for one role, e.g. reporter=...; repeatable."),
    ] = None,
    fallback_model: Annotated[
        list[str] | None,
        typer.Option("--fallback-model", metavar="MODEL", help="Asked while the model is not available; repeatable."),
    ] = None,
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="quick, standard (default) or deep.")] = None,
    mode: Annotated[
        str | None, typer.Option(metavar="NAME", help="report (default) or answer: at most 140 characters.")
    ] = None,
    depth: Annotated[int | None, typer.Option(metavar="N", help="Rounds of research, 1 to 5.")] = None,
    breadth: Annotated[int | None, typer.Option(metavar="N", help="Tool calls in one decision, 1 to 10.")] = None,
    tools: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Use these tools only, such as documents,web_search.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask the web again: no answers of the last minutes.")] = False,
    max_usd: Annotated[
        float | None, typer.Option("--max-usd", metavar="USD", help="Dollars the run may cost; 5 if prices are known.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", metavar="N", help="Tokens it may use.")] = None,
    max_calls: Annotated[int | None, typer.Option("--max-calls", metavar="N", help="Requests to models.")] = None,
    max_seconds: Annotated[float | None, typer.Option("--max-seconds", metavar="S", help="Seconds of work.")] = None,
    price: Annotated[
        list[str] | None,
        typer.Option("--price", metavar="MODEL=IN,OUT", help="Dollars per million tokens; repeatable."),
    ] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Say what it would take, and do not start it.")] = False,
    artifacts: Root = None,
    run_key: Annotated[
        str | None, typer.Option("--run-key", metavar="KEY", help="Runs with the same key share finished calls.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Research a question and write a cited report.

    Without a model the report is made of quotations; without --docs and TAVILY_API_KEY it is about Python.

    Example: fathom research "What did we decide about retries?" --docs notes/ --model openai/gpt-5-mini
    """
    from fathom.config.inputs import parse_prices, parse_role_models
    from flows.preflight import check_request, settings_from

    caps = {"max_usd": max_usd, "max_tokens": max_tokens, "max_calls": max_calls, "max_seconds": max_seconds}
    options: dict[str, object] = {
        "docs": docs,
        "model": model,
        "profile": profile,
        "mode": mode,
        "depth": depth,
        "breadth": breadth,
    }
    roles = parse_role_models(role_model or [])
    names = [name.strip() for name in tools.split(",") if name.strip()] if tools else None
    options |= {"role_models": roles, "fallback_models": fallback_model, "tools": names, "artifacts": artifacts}
    options |= {
        "depth": depth,
        "breadth": breadth,
        "fresh": fresh or None,
        "budget": {name: cap for name, cap in caps.items() if cap is not None},
        "prices": parse_prices(price or []),
    }
    settings = settings_from(options)
    if estimate:
        from flows.cli.screen import show_estimate
        from flows.preflight import estimated

        phases = estimated(query, settings)
        typer.echo(json.dumps([asdict(phase) for phase in phases], indent=2)) if as_json else show_estimate(phases)
        return
    checked = check_request(query, settings)

    async def start() -> FlowRun:
        from flows import local

        return await local.create(checked.query, checked.settings, run_key)

    async def finish(flow_run: FlowRun, watch: Watch) -> RunResult | None:
        from flows import local

        return await local.execute(flow_run)

    follow(start, finish, checked.notices, quiet=quiet, as_json=as_json)


@app.command()
def resume(
    run: Annotated[str, typer.Argument(help="A run's id, its first digits, its name, folder or plan title.")],
    wait: Annotated[
        bool, typer.Option(" /--no-wait", help="Leave a deployment's run to its worker.", show_default=False)
    ] = True,
    artifacts: Root = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Finish a run that was interrupted, cancelled or failed; no call that had finished is repeated.

    A run of a deployment is scheduled again for a worker. A run of a machine that is gone goes on here.

    Example: fathom resume 1a2b3c4d
    """

    async def find() -> FlowRun:
        from flows import resuming

        return await resuming.find(run, artifacts)

    async def finish(flow_run: FlowRun, watch: Watch) -> RunResult | None:
        from flows import resuming

        return await resuming.finish(flow_run, watch.say, wait=wait)

    follow(find, finish, [], quiet=quiet, as_json=as_json)


@app.command()
def runs(
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=200, help="At most so many.")] = 20,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """List the latest runs: those Prefect knows and those that have a folder.

    Example: fathom runs --limit 5
    """
    from fathom.storage.store import ArtifactStore
    from flows.cli.listing import latest
    from flows.cli.screen import show_rows
    from flows.preflight import artifact_root

    rows = asyncio.run(latest(ArtifactStore(artifact_root(artifacts)), limit))
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False))
    else:
        show_rows(rows)


@app.command()
def show(
    run: Annotated[str, typer.Argument(help="A run's id, its first digits, its folder or plan title.")],
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Show a run's plan and report; without a terminal, the report's Markdown alone. Needs no server.

    Example: fathom show 1a2b3c4d > report.md
    """
    from fathom.storage.store import ArtifactStore
    from flows.cli.screen import show_run
    from flows.preflight import artifact_root
    from flows.runs import find, load, locate

    root, name = locate(run, artifact_root(artifacts))

    async def stored() -> StoredRun:
        store = ArtifactStore(root)
        return await load(store, await find(store, name))

    found = asyncio.run(stored())
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        show_run(found)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Say what is configured, what can be reached, and how to set what is missing.

    Exits with 1 when something is broken that a run without options needs.

    Example: fathom doctor
    """
    from flows.cli.doctor import examine
    from flows.cli.screen import show_findings

    findings = list(examine())
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        show_findings(findings)
    raise typer.Exit(1 if any(finding.state == "broken" for finding in findings) else 0)


if __name__ == "__main__":
    main()
