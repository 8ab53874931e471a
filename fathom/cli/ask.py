"""`fathom ask`: a question that follows up on a finished run."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Annotated

import typer

from fathom.cli.options import Given, Json, Mcp, Open, Quiet, Run
from fathom.cli.printing import one_line
from fathom.cli.research import follow, is_terminal

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

    from fathom.cli.watch import Watch
    from fathom.models import RunResult
    from fathom.run.engine import Parent
    from fathom.storage.runs import StoredRun


def ask(
    context: typer.Context,
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

    usual = {"people": {"clarify": "auto"}} if is_terminal(quiet=quiet, as_json=as_json) else {}
    given = Given.of(context)
    chosen = given.chosen(usual)
    store_given = chosen.pop("artifacts", None)
    parent, root = read_run(run, store_given, found)
    settings = given.checked({**parent.settings_with(chosen), "artifacts": root})
    request = check_request(query, settings, follow_up=True)

    def start() -> Awaitable[FlowRun]:
        from fathom.flows.runs import local

        return local.create(request.query, request.settings, parent=parent.run_id)

    def finish(flow_run: FlowRun, _watch: Watch) -> Awaitable[RunResult]:
        from fathom.flows.runs import local

        return local.execute(flow_run)

    kept = ", ".join(f"{name} {one_line(str(value))}" for name, value in parent.settings.items() if name not in chosen)
    notices = [*([f"Settings taken from the run {parent.run_id[:8]}: {kept}"] if kept else []), *request.notices]
    follow(start, finish, notices, open_it=open_it, quiet=quiet, as_json=as_json)
