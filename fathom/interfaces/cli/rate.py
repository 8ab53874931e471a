"""`fathom rate`: what a reader says of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fathom.interfaces.cli.answer import As
from fathom.interfaces.cli.options import Json, Root, Run
from fathom.interfaces.cli.printing import line, one_line, output

if TYPE_CHECKING:
    from fathom.models import ReportRating
    from fathom.storage.runs import StoredRun


def rate(
    run: Run,
    thumb: Annotated[Literal["up", "down"], typer.Argument(help="Whether the report was of use.", show_default=False)],
    *,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why, in quotes.")] = "",
    name: As = None,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Rate a report: up or down, with a note.

    Your rating replaces your earlier one. `fathom show` prints the ratings of a run and `fathom costs` their totals;
    the report and its evidence stay as they are.

    Example: fathom rate 1a2b3c4d down --note "the 2025 figures are missing"
    """
    from fathom.flows.runs.steering import check_author, check_remark
    from fathom.flows.runs.stored import no_report, read_run
    from fathom.storage.ratings import Ratings

    said, author = check_remark(note) if note else "", check_author(name)

    async def give(stored: StoredRun) -> ReportRating:
        if await stored.files.report_text() is None:
            raise await no_report(stored.files)
        return await Ratings(stored.store).give(stored.run_id, good=thumb == "up", note=said, by=author)

    output(read_run(run, artifacts, give), _show, as_json=as_json)


def _show(rating: ReportRating) -> None:
    line(f"Rated {'up' if rating.good else 'down'} as {one_line(rating.by)}.")
