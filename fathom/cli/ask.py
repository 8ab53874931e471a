"""`fathom ask`: a question that follows up on a finished run."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Annotated

import typer

from fathom.cli.options import Corpora, Json, Mcp, Open, Quiet, Root, Run, Set, checked, chosen
from fathom.cli.printing import one_line
from fathom.cli.research import follow, is_terminal

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

    from fathom.cli.watch import Watch
    from fathom.models import RunResult
    from fathom.run.engine import Parent
    from fathom.storage.runs import StoredRun


def ask(
    run: Run,
    query: Annotated[str, typer.Argument(help="The question, in quotes.", show_default=False)],
    *,
    docs: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="File or folder to read instead of the earlier run's; repeatable."),
    ] = None,
    corpus: Corpora = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Model for every role (default: as in the earlier run).")
    ] = None,
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="How thorough: quick, standard or deep.")] = None,
    mode: Annotated[
        str | None, typer.Option(metavar="NAME", help="Output: report or answer (at most 140 characters).")
    ] = None,
    depth: Annotated[int | None, typer.Option(metavar="N", help="Number of research rounds, 1 to 5.")] = None,
    tools: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Tools to use; with earlier_run alone, nothing new is read.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Read pages again even if the earlier run read them.")] = False,
    max_usd: Annotated[float | None, typer.Option(metavar="USD", help="Maximum cost of the run.")] = None,
    setting: Set = None,
    mcp: Mcp = None,
    artifacts: Root = None,
    open_it: Open = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask a question that follows up on a finished run.

    Fathom first searches what the earlier run read, and researches only what is missing. The question may refer to the
    earlier one. The run uses the earlier run's settings unless you set others. Each report names the other run.

    Example: fathom ask 1a2b3c4d "and in Europe?"
    """
    from fathom.config.inputs import names_in
    from fathom.errors import InvalidInput
    from fathom.flows.preflight import artifact_root, check_request
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

    options = {
        "docs": docs,
        "corpora": corpus,
        "model": model,
        "profile": profile,
        "mode": mode,
        "depth": depth,
        "tools": names_in(tools),
        "fresh": fresh,
        "budget.max_usd": max_usd,
        "artifacts": artifacts,
    }
    usual = {"people": {"clarify": "auto"}} if is_terminal(quiet=quiet, as_json=as_json) else {}
    given = chosen(options, setting, usual)
    store_given = given.pop("artifacts", None)
    parent, root = read_run(run, store_given, found)
    settings = checked({**parent.settings_with(given), "artifacts": root}, options, setting)
    request = check_request(query, settings, follow_up=True)

    def start() -> Awaitable[FlowRun]:
        from fathom.flows.runs import local

        return local.create(request.query, request.settings, parent=parent.run_id)

    def finish(flow_run: FlowRun, _watch: Watch) -> Awaitable[RunResult]:
        from fathom.flows.runs import local

        return local.execute(flow_run)

    kept = ", ".join(f"{name} {one_line(str(value))}" for name, value in parent.settings.items() if name not in given)
    notices = [*([f"Settings taken from the run {parent.run_id[:8]}: {kept}"] if kept else []), *request.notices]
    follow(start, finish, notices, open_it=open_it, quiet=quiet, as_json=as_json)
