"""Changes of counts as a table."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.guard.rules import Change


def table(found: Sequence[Change]) -> str:
    """Return changes as a Markdown table."""
    lines = ["| measurement | count | accepted | now | |", "|---|---|--:|--:|---|"]
    for change in found:
        accepted, now = (("-" if value is None else f"{value:,}") for value in (change.accepted, change.now))
        lines.append(f"| {change.measurement} | {change.name} | {accepted} | {now} | {change.verdict} |")
    return "\n".join(lines)
