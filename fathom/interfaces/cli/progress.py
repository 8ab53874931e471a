"""Progress on stderr, of a run and of a batch, and the result of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import shorten
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from fathom.batch.folder import used, words
from fathom.config.environment import Environment
from fathom.interfaces.cli.exits import logged
from fathom.interfaces.cli.printing import MARKS, dollars, one_line, printable, row
from fathom.models import StepStatus
from fathom.models.run import RowStatus
from fathom.tasks.sentences import lead_of, sentence_of
from fathom.telemetry.audit_events import AuditType
from fathom.text.blocks import split_blocks
from fathom.text.plain import counted

if TYPE_CHECKING:
    from fathom.config.groups import Budget
    from fathom.models import Account, Plan
    from fathom.models.run import BatchResult, BatchRow
    from fathom.telemetry.audit_events import AuditEvent
    from fathom.telemetry.progress import Event

_LABELS = {
    "phase": "",
    "plan": "plan: ",
    "step": "step ",
    "tool": "",
    "reflection": "so far: ",
    "remark": "",
    "speed": "",
    "warning": "warning: ",
}
"""The prefix of each kind of event that gets a line when there is no live view."""
_KEPT = {"speed": "dim", "remark": "bold", "warning": "yellow"}
"""Styles of the kinds whose lines stay above the live view."""
_STYLES = {"todo": "dim", "in_progress": "bold", "done": "green", "blocked": "yellow"}
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_A_SECOND = 8
MOST_STEPS = 12  # that the live view shows
MOST_DOING = 4
MOST_DRAFT = 6  # last lines shown of the section that is being written


class _Stderr(Console):
    """A console that does not end the process when its reader is gone."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class RunWatcher:
    """Follows a run on stderr:

    a live view on a terminal, one line per event elsewhere, nothing when quiet. Without `progress`, only warnings are
    shown. If the log is JSON, events and lines go to the log instead.
    """

    def __init__(self, *, quiet: bool = False, progress: bool = True) -> None:
        self.console: Console = _Stderr(stderr=True, highlight=False)
        self._logs = bool(Environment.read().log)
        self._quiet = quiet or self._logs
        self._progress = progress and not self._quiet
        self._live = Live(
            self, console=self.console, transient=True, redirect_stdout=False, refresh_per_second=FRAMES_A_SECOND
        )
        self._began = self._heard = monotonic()
        self._phase = "starting"
        self._plan: Plan | None = None
        self._statuses: dict[str, str] = {}  # by step id
        self._doing: dict[int, str] = {}
        self._draft = ""  # of the section that is being written
        self._tools = 0
        self._sources = set[str]()
        self._spent: Account | None = None
        self._caps: Budget | None = None
        self._priced = True

    def __enter__(self) -> Self:
        if self.console.is_terminal and self._progress:
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._live.stop()

    @contextmanager
    def aside(self) -> Iterator[Console]:
        """Release the terminal to other code inside the block."""
        live = self._live.is_started
        self._live.stop()
        try:
            yield self.console
        finally:
            if live:
                self._live.start()

    def say(self, line: str, style: str = "") -> None:
        """Show a line that stays on the screen."""
        if self._logs:
            logged(line)
        elif self._progress:
            self._print(Text(printable(line), style=style))

    def warn(self, line: str) -> None:
        """Show a line that also matters to somebody who wants to see no progress."""
        if self._progress or self._logs:
            self.say(line)
        else:
            self._print(Text(f"fathom: {printable(line)}"))

    def _print(self, shown: RenderableType) -> None:
        try:
            self.console.print(shown, soft_wrap=not self.console.is_terminal)
        except OSError:  # nobody reads it any more, or the disk is full: the run is worth more
            self._quiet, self._progress = True, False

    def __call__(self, event: Event) -> None:
        """Take note of an event of the run, and show it."""
        self._note(event)
        if event.recorded and event.recorded.type in (AuditType.note_created, AuditType.section_written):
            self._tell(event.recorded)
        starts = event.status in (None, "in_progress")
        if event.kind not in _LABELS or not event.message or not starts:
            return
        limit = 500 if event.kind == "warning" else 150
        line = _LABELS[event.kind] + shorten(event.message, limit, placeholder=" …")
        if event.kind == "warning" and not self._progress and not self._quiet:
            self._print(Text(printable(line)))
        elif not self._live.is_started:
            self.say(f"{monotonic() - self._began:6.1f} s  {line}")
        elif event.kind in _KEPT:
            self.say(line, _KEPT[event.kind])

    def _tell(self, event: AuditEvent) -> None:
        """Show a note or a drafted section; of the sections, only the answer is shown whole.

        With JSON logs the run itself logs it.
        """
        found: dict[str, Any] = event.details
        if not self._live.is_started:
            if not self._logs:
                self.say(f"{monotonic() - self._began:6.1f} s  {one_line(sentence_of(event))}")
        elif event.type is AuditType.note_created:
            title = Text.assemble(
                (one_line(event.action), "bold"), (f"  {counted(len(found['source_ids']), 'source')}", "dim")
            )
            self._print(Group(title, one_line(lead_of(found["summary"])), ""))
        else:
            from rich.markdown import Markdown

            text = found["text"] if found["position"] == 0 else _first_paragraph(found["text"])
            about = f"  draft, not checked yet, {found['number']} of {found['of']}"
            title = Text.assemble((one_line(event.action), "bold"), (about, "dim"))
            self._print(Group(title, Markdown(printable(text)), ""))

    def _note(self, event: Event) -> None:
        if event.kind == "phase":
            self._phase, self._draft = event.message, ""
        elif event.draft:
            self._draft = event.draft.text
        elif event.kind == "begin":
            self._doing[event.key] = event.message
        elif event.kind == "end":
            self._doing.pop(event.key, None)
        elif event.kind == "step" and event.status:
            self._statuses[event.step_id] = event.status.value
        elif event.kind == "tool":
            self._tools += 1
            self._sources.update(event.sources)
        elif event.plan:
            self._plan = event.plan
            planned = {str(step.step_id): step.status.value for step in event.plan.steps}
            self._statuses |= {step_id: status for step_id, status in planned.items() if status != "todo"}
        elif event.spent:
            self._spent, self._caps, self._heard = event.spent, event.caps, monotonic()
            self._priced &= event.priced

    def __rich__(self) -> RenderableType:
        """Draw the plan, the current activity and the usage so far, in as many lines as the terminal has."""
        doing = [
            f"{message} × {number}" if number > 1 else message
            for message, number in Counter(list(self._doing.values())).items()
        ]
        if len(doing) > MOST_DOING:
            doing = [*doing[: MOST_DOING - 1], f"and {len(doing) - MOST_DOING + 1} more"]
        used = list(self._lines(self._used()))
        room = self.console.height - len(doing) - len(used) - 2
        draft = self._last_lines(min(room // 2, MOST_DRAFT))
        room -= len(draft)
        frame = FRAMES[int(monotonic() * FRAMES_A_SECOND) % len(FRAMES)]
        steps = self._steps(max(0, min(room, MOST_STEPS)))
        return Group(
            *steps, drawn_line(f"{frame} {self._phase}"), *(drawn_line(f"    {what}") for what in doing), *draft, *used
        )

    def _last_lines(self, most: int) -> list[Text]:
        """Draw the end of the section that is being written, below a line that names the section."""
        if most < 2 or not self._draft:
            return []
        width = max(20, self.console.width - 6)
        text = Text(one_line(self._draft[-most * width :]))
        lines = text.wrap(self.console, width)[-(most - 1) :]
        return [
            drawn_line("    draft, not checked yet:", "dim"),
            *(drawn_line(f"    {line}", "italic") for line in lines),
        ]

    def _steps(self, room: int) -> Iterator[Text]:
        """Draw the plan as a checklist; of a long plan, the part around the first step that is not done."""
        steps = self._plan.steps if self._plan else []
        if not room or not steps:
            return
        statuses = [self._statuses.get(str(step.step_id), "todo") for step in steps]
        drawn = zip(statuses, steps, strict=True)
        lines = [drawn_line(f"  {MARKS[status]} {s.step_id}. {s.title}", _STYLES[status]) for status, s in drawn]
        at = next((n for n, step in enumerate(steps) if step.status is StepStatus.todo), 0)
        if len(lines) > room:
            first = max(0, min(at - 1, len(lines) - room + 1))
            shown = lines[first : first + room - 1]
            lines = [*shown, drawn_line(f"    {counted(len(lines) - len(shown), 'more step')}", "dim")]
        yield from lines

    def _used(self) -> Iterator[str]:
        if self._tools:
            yield counted(self._tools, "tool call")
            yield counted(len(self._sources), "source")
        spent, caps = self._spent, self._caps
        if spent and caps and spent.calls:
            yield f"{spent.calls:,} of {counted(caps.max_calls, 'model call')}"
            yield f"{spent.tokens:,} of {counted(caps.max_tokens, 'token')}"
        if spent and caps and (spent.calls or spent.usd):
            cap = "" if caps.max_usd is None else f" of ${caps.max_usd:,.2f}"
            yield dollars(spent.usd if self._priced else None) + cap
        if spent and caps and caps.max_seconds is not None:
            yield f"{clock(spent.seconds + monotonic() - self._heard)} of {clock(caps.max_seconds)}"
        else:
            yield clock(monotonic() - self._began)

    def _lines(self, parts: Iterator[str]) -> Iterator[Text]:
        """Join parts into lines of the terminal's width."""
        line = ""
        for part in parts:
            if line and len(line) + len(part) + 3 > self.console.width:
                yield drawn_line(line, "dim")
                line = ""
            line = f"{line} · {part}" if line else f"  {part}"
        yield drawn_line(line, "dim")


def _first_paragraph(markdown: str) -> str:
    blocks = (block for block in split_blocks(markdown) if block.kind in ("prose", "item"))
    return next((markdown[block.start : block.end] for block in blocks), "")


def drawn_line(text: str, style: str = "") -> Text:
    """Return a line of the live view, cut to the width of the terminal."""
    return Text(printable(text).replace("\n", " "), style=style, no_wrap=True, overflow="ellipsis")


def clock(seconds: float) -> str:
    """Return seconds as minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


BAR = 40  # characters
MOST_RUNNING = 8  # questions that the live view shows
_BATCH_STYLES = {RowStatus.complete: "green", RowStatus.degraded: "yellow", RowStatus.insufficient_evidence: "yellow"}


class BatchWatch(RunWatcher):
    """Follows a batch on stderr: a live view on a terminal, one line per question elsewhere, nothing when quiet."""

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
                self.say(shorten(one_line(said), 200, placeholder=" …"), _BATCH_STYLES.get(changed.status, "red"))

    def __rich__(self) -> RenderableType:
        """Draw the number of finished questions, the questions in progress, and the usage."""
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
            drawn_line(f"  {self._phase}", "dim"),
            *(drawn_line(f"  {frame} {row.number}. {row.question}", "dim") for row in running[:MOST_RUNNING]),
            *(drawn_line(line, "dim") for line in more),
            drawn_line(f"  {used(rows)} · {clock(monotonic() - self._began)}", "dim"),
        )


def show_batch(result: BatchResult) -> None:
    """Print the result of a batch."""
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
