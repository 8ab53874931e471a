"""The index of a batch: one line a question, as a page that needs nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import fathom.report
from fathom.models.run import BatchRow, RowStatus
from fathom.report.html import policy
from fathom.text.plain import clean_text, counted

_TEMPLATES = Path(__file__).parent / "templates"
_STYLES = (Path(fathom.report.__file__).parent / "templates" / "report.css", _TEMPLATES / "index.css")


def render_index(title: str, rows: Sequence[BatchRow]) -> str:
    """Render the index; the same arguments give the same bytes."""
    style = "".join(path.read_text(encoding="utf-8") for path in _STYLES)
    page: str = _template().render(
        title=clean_text(title),
        rows=[_cells(row) for row in rows],
        totals=", ".join(f"{count} {words(status)}" for status, count in _counts(rows).items()),
        used=used(rows),
        style=Markup(style),  # noqa: S704 - files of this package
        policy=policy(style),
    )
    return page


def words(status: RowStatus) -> str:
    """Return a status as people read it."""
    return status.value.replace("_", " ")


def used(rows: Sequence[BatchRow]) -> str:
    """Return what all questions used so far, in words."""
    parts = [counted(sum(row.tool_calls for row in rows), "tool call")]
    if calls := sum(row.llm_calls for row in rows):
        priced = [row.cost_usd for row in rows if row.cost_usd is not None]
        parts += [counted(calls, "model call"), f"{sum(row.tokens for row in rows):,} tokens", f"${sum(priced):.4f}"]
        if unknown := len(rows) - len(priced):
            parts.append(f"the price of {counted(unknown, 'question')} is unknown")
    return ", ".join(parts)


def dollars(row: BatchRow) -> str:
    """Return the cost of a question; nothing for one that cost nothing without a model."""
    return (
        "" if not row.llm_calls and row.cost_usd == 0 else "unknown" if row.cost_usd is None else f"${row.cost_usd:.4f}"
    )


def _counts(rows: Sequence[BatchRow]) -> dict[RowStatus, int]:
    found = Counter(row.status for row in rows)
    return {status: found[status] for status in RowStatus if found[status]}


def _cells(row: BatchRow) -> dict[str, Any]:
    return {
        "number": row.number,
        "question": clean_text(row.question),
        "status": RowStatus.degraded.value if row.answered == "no" else row.status.value,
        "said": words(row.status)
        + (", partly answered" if row.answered == "partly" else "")
        + (", may be answered" if row.answered == "maybe" else "")
        + (", not answered" if row.answered == "no" else ""),
        "detail": clean_text(row.answer or row.reason),
        # Relative, so that the index can be opened from a copy of the store.
        "report": f"../../{row.report[row.report.index('research_artifacts/') :].removesuffix('md')}html"
        if "research_artifacts/" in row.report
        else "",
        "sources": row.sources,
        "cost": dollars(row),
        "seconds": f"{row.seconds:.0f}" if row.status.ended else "",
    }


@cache
def _template() -> Any:
    loader = FileSystemLoader(_TEMPLATES)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("index.html.j2")
