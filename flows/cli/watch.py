"""Progress of a run on stderr."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import shorten
from time import monotonic
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from fathom.config.environment import Environment
from fathom.text.counting import counted
from flows.cli.exits import logged
from flows.cli.printing import MARKS, dollars, printable

if TYPE_CHECKING:
    from fathom.config.caps import Budget
    from fathom.models import Account, Plan
    from fathom.telemetry.progress import Event

_LABELS = {
    "phase": "",
    "plan": "plan: ",
    "step": "step ",
    "tool": "",
    "reflection": "reflection: ",
    "remark": "",
    "speed": "",
    "warning": "warning: ",
}
"""What is put before the message of each kind of event that has a line where there is no live view."""
_KEPT = {"speed": "dim", "remark": "bold", "warning": "yellow"}
"""Styles of the kinds whose lines stay above the live view."""
_STYLES = {"todo": "dim", "in_progress": "bold", "done": "green", "blocked": "yellow"}
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_A_SECOND = 8
MOST_STEPS = 12  # that the live view shows
MOST_DOING = 4


class _Stderr(Console):
    """A console that does not end the process when its reader is gone."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Watch:
    """Follows a run on stderr: a live view on a terminal, one line an event elsewhere, nothing when quiet.

    Without `progress`, only warnings are shown. Where the log is JSON, it has what happens, and lines go there too.
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
        """Give the terminal to somebody else inside the block."""
        live = self._live.is_started
        self._live.stop()
        try:
            yield self.console
        finally:
            if live:
                self._live.start()

    def say(self, line: str, style: str = "") -> None:
        """Show a line that stays."""
        if self._logs:
            logged(line)
        elif self._progress:
            self._print(line, style)

    def _print(self, line: str, style: str = "") -> None:
        try:
            self.console.print(Text(printable(line), style=style), soft_wrap=not self.console.is_terminal)
        except OSError:  # nobody reads it any more, or the disk is full: the run is worth more
            self._quiet, self._progress = True, False

    def __call__(self, event: Event) -> None:
        """Take note of an event of the run, and show it."""
        self._note(event)
        starts = event.status in (None, "in_progress")
        if event.kind not in _LABELS or not event.message or not starts:
            return
        limit = 500 if event.kind == "warning" else 150
        line = _LABELS[event.kind] + shorten(event.message, limit, placeholder=" …")
        if event.kind == "warning" and not self._progress and not self._quiet:
            self._print(line)
        elif not self._live.is_started:
            self.say(f"{monotonic() - self._began:6.1f} s  {line}")
        elif event.kind in _KEPT:
            self.say(line, _KEPT[event.kind])

    def _note(self, event: Event) -> None:
        if event.kind == "phase":
            self._phase = event.message
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
            known = self._statuses  # a step of a wave is in progress as soon as the wave is; here, once it begins
            planned = {str(step.step_id): step.status.value for step in event.plan.steps}
            self._statuses = {
                step_id: known.get(step_id, "todo") if status == "in_progress" else status
                for step_id, status in planned.items()
            }
        elif event.spent:
            self._spent, self._caps, self._heard = event.spent, event.caps, monotonic()
            self._priced &= event.priced

    def __rich__(self) -> RenderableType:
        """Draw the plan, what the run is doing, and what it has used so far, in the lines that the terminal has."""
        doing = [
            f"{message} × {number}" if number > 1 else message
            for message, number in Counter(list(self._doing.values())).items()
        ]
        if len(doing) > MOST_DOING:
            doing = [*doing[: MOST_DOING - 1], f"and {len(doing) - MOST_DOING + 1} more"]
        used = list(self._lines(self._used()))
        room = self.console.height - len(doing) - len(used) - 2
        frame = FRAMES[int(monotonic() * FRAMES_A_SECOND) % len(FRAMES)]
        steps = self._steps(max(0, min(room, MOST_STEPS)))
        return Group(
            *steps, drawn_line(f"{frame} {self._phase}"), *(drawn_line(f"    {what}") for what in doing), *used
        )

    def _steps(self, room: int) -> Iterator[Text]:
        """Draw the plan as a checklist; of a long one, the part around the first step that is not done."""
        steps = self._plan.steps if self._plan else []
        if not room or not steps:
            return
        statuses = [self._statuses.get(str(step.step_id), "todo") for step in steps]
        drawn = zip(statuses, steps, strict=True)
        lines = [drawn_line(f"  {MARKS[status]} {s.step_id}. {s.title}", _STYLES[status]) for status, s in drawn]
        at = next((n for n, status in enumerate(statuses) if status in ("todo", "in_progress")), 0)
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


def drawn_line(text: str, style: str = "") -> Text:
    """Return a line of the live view, cut to the width of the terminal."""
    return Text(printable(text).replace("\n", " "), style=style, no_wrap=True, overflow="ellipsis")


def clock(seconds: float) -> str:
    """Return seconds as minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"
