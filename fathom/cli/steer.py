"""`fathom tell` and `fathom stop`: a word to a run that is going on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fathom.cli.options import Json, Root, Run
from fathom.cli.printing import line, one_line, output

if TYPE_CHECKING:
    from fathom.flows.runs.steering import Steered

As = Annotated[
    str | None, typer.Option("--as", metavar="NAME", help="Your name, also shown in the report (default: user@host).")
]


def tell(
    run: Run,
    text: Annotated[str, typer.Argument(help="What the run should look at, in quotes.", show_default=False)],
    *,
    name: As = None,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Tell a run in progress what else to look at.

    The run may be in any process, on any machine that shares the store. It acts on the remark after the current round;
    if that was the last one, the run adds a round beyond --depth. A run that is already writing accepts no remarks.

    Example: fathom tell 1a2b3c4d "look at the 2025 figures too"
    """
    from fathom.flows.runs.steering import check_author, check_remark, say
    from fathom.storage.steering import Steer

    said = say(run, Steer.tell, check_remark(text), check_author(name), artifacts)
    output(said, lambda said: _show(said, "acts on it after the current round"), as_json=as_json)


def stop(run: Run, *, name: As = None, artifacts: Root = None, as_json: Json = False) -> None:
    """End the research of a run and let it write its report.

    Calls in progress finish, no new call is made, and the report uses what was found and says who stopped the research.
    To end a run without a report, cancel it: Ctrl-C, Cancel in the UI, or `prefect flow-run cancel`.

    Example: fathom stop 1a2b3c4d
    """
    from fathom.flows.runs.steering import check_author, say
    from fathom.storage.steering import Steer

    said = say(run, Steer.stop, "", check_author(name), artifacts)
    output(
        said,
        lambda said: _show(said, "writes its report once the calls in progress have ended"),
        as_json=as_json,
    )


def _show(said: Steered, then: str) -> None:
    run = said.run_id[:8]
    if said.running:
        line(f"Told as {one_line(said.author)}: the run {run} {then}.")
    else:
        line(
            f"Stored as {one_line(said.author)}. No process works on the run {run} now; once one does, the run {then}."
        )
        line((f"If the run was interrupted: fathom resume {run}", "dim"))
