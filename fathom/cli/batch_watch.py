"""Progress of a batch on stderr, and what it came to."""

from __future__ import annotations

from collections import Counter
from textwrap import shorten
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from fathom.batch.page import used, words
from fathom.cli.printing import dollars, one_line, row
from fathom.cli.watch import FRAMES, FRAMES_A_SECOND, Watch, clock, drawn_line
from fathom.models.run import RowStatus

if TYPE_CHECKING:
    from fathom.models.run import BatchResult, BatchRow
    from fathom.telemetry.progress import Event

BAR = 40  # characters
MOST_RUNNING = 8  # questions that the live view shows
_STYLES = {RowStatus.complete: "green", RowStatus.degraded: "yellow", RowStatus.insufficient_evidence: "yellow"}


class BatchWatch(Watch):
    """Follows a batch on stderr: a live view on a terminal, one line a question elsewhere, nothing when quiet."""

    def __init__(self, *, quiet: bool = False, progress: bool = True) -> None:
        super().__init__(quiet=quiet, progress=progress)
        self._rows: dict[int, BatchRow] = {}  # by number

    def __call__(self, event: Event) -> None:
        """Take note of an event of the batch, and show it."""
        if event.kind != "batch":
            super().__call__(event)
            return
        known = bool(self._rows)
        self._rows |= {row.number: row for row in event.rows}
        for changed in event.rows if known else ():
            if changed.status.ended:
                done = sum(row.status.ended for row in self._rows.values())
                why = f" ({changed.reason})" if changed.reason and not changed.status.finished else ""
                said = f"{done:>4} of {len(self._rows)}  {words(changed.status)}{why}: {changed.question}"
                self.say(shorten(one_line(said), 200, placeholder=" …"), _STYLES.get(changed.status, "red"))

    def __rich__(self) -> RenderableType:
        """Draw how many questions have ended, which are under way, and what was used."""
        rows = list(self._rows.values())
        if not rows:
            return super().__rich__()
        counts = Counter(row.status for row in rows)
        ended = sum(count for status, count in counts.items() if status.ended)
        filled = BAR * ended // len(rows)
        frame = FRAMES[int(monotonic() * FRAMES_A_SECOND) % len(FRAMES)]
        parts = [f"{counts[status]} {words(status)}" for status in RowStatus if counts[status]]
        running = [row for row in rows if row.status is RowStatus.running]
        more = [f"    and {len(running) - MOST_RUNNING} more"] if len(running) > MOST_RUNNING else []
        return Group(
            drawn_line(f"  {'━' * filled}{'─' * (BAR - filled)} {ended} of {len(rows)}"),
            drawn_line(f"  {' · '.join(parts)}"),
            *(drawn_line(f"  {frame} {row.number}. {row.question}", "dim") for row in running[:MOST_RUNNING]),
            *(drawn_line(line, "dim") for line in more),
            drawn_line(f"  {used(rows)} · {clock(monotonic() - self._began)}", "dim"),
        )


def show_batch(result: BatchResult) -> None:
    """Print what a batch came to."""
    ended = ", ".join(f"{count} {words(status)}" for status, count in result.ended.items())
    rows = [
        ("index", result.page),
        ("results", result.results),
        ("ended", f"{ended} (of {result.questions})"),
        ("used", f"{result.tokens:,} tokens, {dollars(result.cost_usd)}" if result.tokens else ""),
    ]
    for name, value in rows:
        if value:
            row((f"  {name:<9}", "dim"), one_line(value))
