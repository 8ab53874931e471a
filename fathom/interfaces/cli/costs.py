"""`fathom costs`: what the runs have cost."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fathom.interfaces.cli.options import Json, Root, store_of
from fathom.interfaces.cli.printing import line, one_line, output
from fathom.text.plain import counted

if TYPE_CHECKING:
    from fathom.flows.operations.costs import CostRow, Costs


def costs(
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Count runs started since then: 30d, 12h, or a date such as 2026-11-01.")
    ] = "30d",
    by: Annotated[
        Literal["model", "day", "deployment"], typer.Option(metavar="NAME", help="Group by model, day or deployment.")
    ] = "model",
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Print what the stored runs have cost.

    Failed and unfinished runs count too. A run with an unknown price is not counted as free but reported separately.
    Only --by deployment needs the Prefect server.

    Example: fathom costs --since 30d --by day
    """

    from fathom.config.inputs import parse_since
    from fathom.flows.operations.costs import By, costs_of

    begin = parse_since(since, datetime.now(UTC))
    found = asyncio.run(costs_of(store_of(artifacts), begin, By(by)))
    output(found, _show, as_json=as_json)


def _show(found: Costs) -> None:
    since = found.since.isoformat(" ", "minutes").removesuffix("+00:00")
    if not found.total.runs:
        line(f"No runs since {since} UTC.")
    else:
        _table(found)
        line((f"\nRuns that began since {since} UTC.", "dim"))
    if found.rated.said:
        line(f"Reports rated by their readers: {found.rated.said}.")
    if found.total.unpriced_runs:
        runs = counted(found.total.unpriced_runs, "run")
        line((f"price unknown: {runs}, not in the totals (for the next run, set --price MODEL=IN,OUT)", "yellow"))
    if found.unsettled_usd:
        line(f"Requests that failed or are not answered yet may have cost up to ${found.unsettled_usd:.4f} more.")
    if found.unreadable:
        line((f"unreadable: {', '.join(map(one_line, found.unreadable))}", "red"))


def _table(found: Costs) -> None:
    heads = [found.by.value, "runs", "calls", "tokens sent", "cached", "received", "dollars"]
    rows = [heads, *map(_cells, found.rows), _cells(found.total)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        aligned = [f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True)]
        style = "bold" if cells in (rows[0], rows[-1]) else ""
        line(("  ".join([f"{cells[0]:<{widths[0]}}", *aligned]), style))


def _cells(row: CostRow) -> list[str]:
    used = row.used
    dollars = f"{used.usd:,.4f}"
    if row.unpriced_runs:
        unknown = "price unknown" if row.unpriced_runs == row.runs else f"unknown: {counted(row.unpriced_runs, 'run')}"
        dollars = f"{dollars} + {unknown}" if used.usd else unknown
    numbers = (f"{number:,}" for number in (row.runs, used.calls, used.sent, used.cached, used.received))
    return [one_line(row.name), *numbers, dollars]
