"""The scores as one page with charts: nothing is loaded from elsewhere, and no script runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from benchmarks.scoring.summary import ROWS, Row, Scored, difference, labels, outcome
from benchmarks.scoring.table import nothing_shared

_GROUPS = {"answers": "Answers", "claims": "Claims and citations", "cost": "Cost"}


def render(systems: Sequence[Scored]) -> str:
    """Return the page of one system, or of two side by side."""
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader, undefined=StrictUndefined, autoescape=select_autoescape(default=True), trim_blocks=True
    )
    groups = [(title, [_bars(row, systems) for row in ROWS if row.group == name]) for name, title in _GROUPS.items()]
    return environment.get_template("page.html").render(
        systems=[
            {"label": label, "set": one.runs.system.set, "count": len(one.scores), "of": one.runs.system}
            for label, one in zip(labels(systems), systems, strict=True)
        ],
        groups=[(title, [bars for bars in rows if bars]) for title, rows in groups],
        questions=_questions(systems),
        nothing_shared=nothing_shared(systems),
    )


def _bars(row: Row, systems: Sequence[Scored]) -> dict[str, object] | None:
    values = [row.mean(one.scores) for one in systems]
    if all(value is None for value in values):
        return None
    longest = 1.0 if row.form == "share" else max(abs(value or 0) for value in values) or 1.0
    found = difference(row, *systems) if len(systems) == 2 else None
    told = ""
    if found:
        less = "no clear difference" if not found.clear else f"differs by {row.shown(abs(found.value))}"
        told = f"{less} (95 % interval {row.shown(found.low)} to {row.shown(found.high)}, n = {found.questions})"
    return {
        "name": row.name,
        "better": {"high": "more is better", "low": "less is better"}.get(row.best, ""),
        "bars": [(row.shown(value), f"{100 * abs(value or 0) / longest:.1f}") for value in values],
        "told": told,
    }


def _questions(systems: Sequence[Scored]) -> list[dict[str, object]]:
    by_id = [one.by_id() for one in systems]
    rows: list[dict[str, object]] = []
    for name in dict.fromkeys(name for held in by_id for name in held):
        question = next(held[name][0].question for held in by_id if name in held)
        cells = [
            (outcome(held[name][1])[0] or held[name][0].result.status.value.replace("_", " "))
            if name in held
            else "not asked"
            for held in by_id
        ]
        rows.append({"id": name, "kind": question.kind, "question": question.question, "cells": cells})
    return rows
