"""`fathom diff`: what changed from one run to a later one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from fathom.cli.options import Json, Root, known_runs
from fathom.cli.printing import line, one_line, output, row

if TYPE_CHECKING:
    from fathom.changes.model import Change, Changes, Statement

_RUN = "id or its first digits, folder, or plan title."
_STYLES = {"changed": "yellow", "disputed": "red", "settled": "green", "new": "green", "gone": "red"}


def diff(
    earlier: Annotated[str, typer.Argument(help=f"The earlier run: {_RUN}", autocompletion=known_runs)],
    later: Annotated[str, typer.Argument(help=f"The later run: {_RUN}", autocompletion=known_runs)],
    *,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with code 1 if something changed.")] = False,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Compare the claims of two runs and show what changed.

    Claims are checked against what the other run read, so the same fact in different words is not a change. Needs no
    server, network or model.

    Example: fathom diff 1a2b3c4d 5e6f7a8b
    """
    from fathom.changes.comparing import compare
    from fathom.flows.runs.comparing import side_of
    from fathom.flows.runs.stored import read_run

    before, after = (read_run(run, artifacts, side_of) for run in (earlier, later))
    if before.query != after.query:
        typer.echo("fathom: the two runs were asked different questions", err=True)
    changes = compare(before, after)
    output(changes, show_changes, as_json=as_json)
    raise typer.Exit(1 if exit_code and changes.any else 0)


def show_changes(changes: Changes) -> None:
    """Print what changed, the most telling first, and the counts last."""
    from fathom.report.changes import HEADINGS, answered_line, summary_of

    for change in changes.changes:
        values = "; ".join(f"{one_line(d.before) or '–'} → {one_line(d.after) or '–'}" for d in change.differences)
        sides = list(_sides(change))
        head = (HEADINGS[change.kind], _STYLES[change.kind])
        if len(sides) > 1:
            line(head, "  ", (values, "bold"))
        for label, said in sides:
            places = ", ".join(one_line(place.title or place.url) for place in said.sources)
            row(
                (f"  {label:<7}", "dim") if label else Text.assemble(head, "  "),
                one_line(said.sentence),
                (f" ({places})", "dim"),
            )
        if change.note:
            row(" " * 9, (one_line(change.note), "yellow"))
    if changes.unread:
        line(("Unknown, because the later run did not read the sources:", "dim"))
        for said in changes.unread:
            row("  - ", one_line(said.sentence))
    if answered := answered_line(changes):
        line(answered)
    summary = summary_of(changes)
    line(f"{summary[:1].upper()}{summary[1:]}.")


def _sides(change: Change) -> Iterator[tuple[str, Statement]]:
    two = bool(change.before and change.after)
    for label, said in (("before", change.before), ("now", change.after)):
        if said:
            yield label if two else "", said
