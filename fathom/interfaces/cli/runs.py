"""`fathom runs`, `show`, `audit`, `diff` and `replay`: reading stored runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from fathom.config.environment import Environment, artifact_root
from fathom.interfaces.cli.options import Json, Open, Root, Run, known_runs, store_of
from fathom.interfaces.cli.printing import (
    MARKS,
    digits_of,
    line,
    one_line,
    open_page,
    output,
    printable,
    row,
    show_summary,
)
from fathom.text.plain import counted, size

if TYPE_CHECKING:
    from fathom.changes.model import Change, Changes, Statement
    from fathom.client.shapes import LibraryHits
    from fathom.flows.replay import ReplayedFile
    from fathom.flows.runs.listing import RunRow
    from fathom.flows.runs.stored import Audit, RunDetails
    from fathom.models import Plan
    from fathom.service.activity import Activity
    from fathom.storage.runs import StoredRun


MOST_LISTED = 200


def runs(
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=MOST_LISTED, help="Number of runs to list.")] = 20,
    sizes: Annotated[
        bool, typer.Option("--sizes", help="Also show how much space each run takes in the store.")
    ] = False,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """List the latest runs.

    The list covers the artifact store and, if it is running, the Prefect server, which also knows runs of other stores;
    the list names these stores. --json also prints the folders. A size includes the run's folder and stored results;
    results shared by several runs count towards the newest run.

    Example: fathom runs --limit 5
    """

    from fathom.flows.runs.listing import latest, with_sizes
    from fathom.flows.runs.stored import on_stderr

    async def listed() -> list[RunRow]:
        store = store_of(artifacts)
        rows = await latest(store, limit + 1, on_stderr)
        return [*(await with_sizes(store, rows[:limit]) if sizes else rows[:limit]), *rows[limit:]]

    found = asyncio.run(listed())
    output(found[:limit], partial(_show_rows, more=len(found) > limit, artifacts=artifacts), as_json=as_json)


def _show_none(artifacts: str | None) -> None:
    """Say which store has no runs and, if it was not named, which others the user has used."""
    from fathom.storage.runs import other_stores

    root = artifact_root(artifacts)
    line(f"No runs in {one_line(root)}.")
    others = [] if artifacts else other_stores(root, Environment.read())
    if others:
        line(("Other stores that you have used; to list one, add --artifacts FOLDER:", "dim"))
    for address in others:
        line(f"  {one_line(address)}")


def _show_rows(found: Sequence[RunRow], *, more: bool, artifacts: str | None) -> None:
    """Show one line a run, and whether there are more; on a terminal, the query is cut to fit."""
    if not found:
        _show_none(artifacts)
        return
    console = Console(highlight=False)
    states = [_state(run) for run in found]
    width, digits = max(map(len, states)), digits_of([run.run_id for run in found])
    sizes = [size(run.bytes) for run in found if run.bytes is not None]
    wide = max((len(text) for text in ("size", *sizes)), default=0)
    column = f"{'size':>{wide}}  " if sizes else ""
    console.print(Text(f"{'run':{digits}}  {'started (UTC)':16}  {'state':{width}}  {column}query", style="bold"))
    for run, state in zip(found, states, strict=True):
        started = run.started[:16].replace("T", " ")
        column = f"{size(run.bytes):>{wide}}  " if run.bytes is not None else ""
        shown = f"{one_line(run.run_id[:digits]):{digits}}  {started:16}  {state:{width}}"
        cells = Text(f"{shown}  {column}{one_line(run.query)}")
        if run.parent:
            cells.append(f"  (follows {one_line(run.parent[:8])})", style="dim")
        overflow: Literal["ellipsis", "ignore"] = "ellipsis" if console.is_terminal else "ignore"
        console.print(cells, no_wrap=True, overflow=overflow, soft_wrap=not console.is_terminal)
    if more:
        line((f"There are older runs: fathom runs --limit {min(MOST_LISTED, 2 * len(found))}", "dim"))
    stores = {run.elsewhere: [one.run_id[:digits] for one in found if one.elsewhere == run.elsewhere] for run in found}
    stores.pop("", None)
    if stores:
        line(("\nStored elsewhere; where fathom show RUN does not find one, add --artifacts FOLDER:", "dim"))
    for store, ids in stores.items():
        row(f"  {one_line(store)}  ", one_line(", ".join(ids)))
    if sizes:
        console.print(f"{counted(len(found), 'run')}, {size(sum(run.bytes or 0 for run in found))}")


def _state(run: RunRow) -> str:
    """Return the state of a run and, if its report may leave the question open, how far."""
    answered = f", {run.answered.doubt}" if run.answered and run.answered.doubt else ""
    return f"{run.state.replace('_', ' ')}{answered}"


def library(
    query: Annotated[str, typer.Argument(help="Words or a question, in quotes.", show_default=False)],
    *,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Number of sentences to show.")] = 10,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Search what finished runs asked, found and answered.

    Each line is a sentence of a run, with its source and the run's question. If the present store has none, the other
    stores that you have used are searched. Needs no server. To have a new run search them too: fathom research
    --library.

    Example: fathom library "notice period of the Pro plan"
    """

    from fathom.client.shapes import LibraryHits
    from fathom.config.inputs import LOOK_FOR, check_words
    from fathom.flows.runs.library import search_here
    from fathom.flows.runs.stored import on_stderr

    hits = asyncio.run(search_here(check_words(query, LOOK_FOR), limit, artifacts, on_stderr))
    output(LibraryHits(query=query, hits=hits), _show_hits, as_json=as_json)


def _show_hits(found: LibraryHits) -> None:
    from fathom.report.chapters import address_in_words
    from fathom.text.wording import ENGLISH

    if not found.hits:
        line("No finished run says anything about this.")
    for number, hit in enumerate(found.hits, 1):
        row((f"{number:>2}. ", "dim"), one_line(hit.sentence))
        if hit.url:
            row("    ", f"{one_line(hit.title)}, {printable(address_in_words(hit.url, ENGLISH))}")
        question = "" if hit.kind == "question" else f"  {one_line(hit.question)}"
        earlier = f", and {counted(hit.earlier_runs, 'earlier run')}" if hit.earlier_runs else ""
        row("    ", (f"{hit.asked[:10]}  {hit.kind}{question}  (fathom show {hit.run_id[:8]}{earlier})", "dim"))


def show(run: Run, open_it: Open = False, artifacts: Root = None, as_json: Json = False) -> None:
    """Print a run's report, or its plan before there is one.

    Needs no server. If the output is not a terminal, the command prints only the report's Markdown.

    Example: fathom show 1a2b3c4d > report.md
    """
    from fathom.flows.runs.stored import load, read_run

    found = read_run(run, artifacts, load)
    output(found, _show_run, as_json=as_json)
    if open_it and found.result:
        open_page(found.result)


def _show_run(run: RunDetails) -> None:
    console = Console(highlight=False)
    if not console.is_terminal and run.report:
        console.file.write(run.report)
        return
    line((one_line(run.query), "bold"))
    if run.parent:
        row(("  follows  ", "dim"), f"{one_line(run.parent.run_id[:8])} {one_line(run.parent.query)}")
    if run.result:
        show_summary(run.result)
    else:
        row(("  state    ", "dim"), "not finished")
        row(("  files    ", "dim"), printable(run.artifacts))
        row(("  go on    ", "dim"), f"fathom resume {run.run_id[:8]}, unless it is running")
    for rating in run.ratings:
        row(("  rated    ", "dim"), "up" if rating.good else "down", one_line(f" by {rating.by} {rating.note}"))
    if run.plan:
        _show_plan(run.plan)
    if run.report:
        from rich.markdown import Markdown

        console.print(Markdown(printable(run.report)))


def _show_plan(plan: Plan) -> None:
    line("")
    for number, step in enumerate(plan.steps, 1):
        status = f" ({plan.state_of(step)})"
        row(f"  {MARKS[step.status]} {number}. ", one_line(step.title), (status, "dim"))
    for said in plan.told:
        line((f"    {one_line(said)}", "dim"))
    line("")


_KINDS = {"llm_called": "role asked"}
"""The label of an event type whose name does not fit every event: a role may answer without a model."""


def audit(run: Run, artifacts: Root = None, as_json: Json = False) -> None:
    """Print the audit log of a run and check that it is intact.

    The log says what was done, by whom and when. What people did with the run through `fathom serve` is listed
    below it. Needs no server. If an event was changed, moved or removed, the command names the first such line and
    exits with 1.

    Example: fathom audit 1a2b3c4d
    """
    from fathom.flows.runs.stored import read_audit, read_run
    from fathom.service.activity import ActivityLog

    async def both(stored: StoredRun) -> tuple[Audit, list[Activity]]:
        return await read_audit(stored), await ActivityLog(stored.store).of(stored.run_id)

    found, people = read_run(run, artifacts, both)

    def show(_found: object) -> None:
        _show_audit(found)
        for entry in people:
            line((f"{entry.at[:19]}  ", "dim"), one_line(f"{entry.by} ({entry.role}) {entry.action} {entry.detail}"))

    told = [entry.model_dump(mode="json", exclude={"unique"}) for entry in people]
    output({**found.model_dump(mode="json"), "people": told}, show, as_json=as_json)
    raise typer.Exit(0 if found.whole else 1)


def _show_audit(found: Audit) -> None:
    depths: dict[str, int] = {}
    for event in found.events:
        depth = depths[event.id] = depths.get(event.parent or "", -1) + 1  # a parent comes before its children
        kind = _KINDS.get(event.type.value, event.type.value.replace("_", " "))
        before = f"{event.at[11:19]}  {event.actor:<10}  {kind:<20}  {'  ' * depth}"
        style = "red" if event.type.value in ("error_occurred", "budget_warning") else ""
        row((before, "dim"), (one_line(event.action), style))
    if found.broken:
        line((f"broken at line {found.broken.line}: {found.broken.problem}", "red"))
    else:
        end = "" if found.head else "; the run's result does not record where the log ends"
        line((f"{len(found.events)} events, none changed, moved or removed{end}", "green"))


_RUN = "id or its first digits (at least 4), folder, or plan title."
_FEW = 5  # changes that are shown beside something else
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
    """Print the changes, the most important first, and the counts last."""
    from fathom.report.changes import answered_line, summary_of

    show_changed(changes, len(changes.changes))
    if changes.unread:
        line(("Unknown, because the later run did not read the sources:", "dim"))
        for said in changes.unread:
            row("  - ", one_line(said.sentence))
    if answered := answered_line(changes):
        line(answered)
    summary = summary_of(changes)
    line(f"{summary[:1].upper()}{summary[1:]}.")


def show_changed(changes: Changes, most: int = _FEW, indent: str = "") -> None:
    """Print the first changes, each below its kind, and how many there are beyond them."""
    for change in changes.changes[:most]:
        _show_change(change, indent)
    if more := len(changes.changes[most:]):
        digits = digits_of(ids := [changes.before.run_id, changes.after.run_id])
        which = " ".join(run_id[:digits] for run_id in ids)
        row(indent, (f"and {counted(more, 'more change')}: fathom diff {which}", "dim"))


def _show_change(change: Change, indent: str) -> None:
    from fathom.report.changes import HEADINGS

    values = "; ".join(f"{one_line(d.before) or '–'} → {one_line(d.after) or '–'}" for d in change.differences)
    sides = list(_sides(change))
    head = (HEADINGS[change.kind], _STYLES[change.kind])
    if len(sides) > 1:
        row(indent, head, "  ", (values, "bold"))
    for label, said in sides:
        places = ", ".join(one_line(place.title or place.url) for place in said.sources)
        row(
            Text.assemble(indent, (f"  {label:<7}", "dim") if label else Text.assemble(head, "  ")),
            one_line(said.sentence),
            (f" ({places})", "dim"),
        )
    if change.note:
        row(f"{indent}{' ' * 9}", (one_line(change.note), "yellow"))


def _sides(change: Change) -> Iterator[tuple[str, Statement]]:
    two = bool(change.before and change.after)
    for label, said in (("before", change.before), ("now", change.after)):
        if said:
            yield label if two else "", said


def replay(run: Run, artifacts: Root = None, as_json: Json = False) -> None:
    """Repeat a run from its recorded calls and compare each file.

    Needs no provider and no server. Exits with 1 if a file differs or a call was not recorded.

    Example: fathom replay 1a2b3c4d
    """
    from fathom.flows.server import quieten

    quieten()  # before Prefect is imported, which would print a notice
    from fathom.flows.replay import replay as repeat
    from fathom.flows.runs.stored import read_run

    files = read_run(run, artifacts, repeat)
    output(files, _show_replayed, as_json=as_json)
    raise typer.Exit(0 if all(file.state == "same" for file in files) else 1)


def _show_replayed(files: Sequence[ReplayedFile]) -> None:
    for file in files:
        line((f"{file.state:<10}", "green" if file.state == "same" else "red"), f"{file.name}, {file.bytes:,} bytes")
