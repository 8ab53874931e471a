"""Progress of a run on stderr."""

from __future__ import annotations

from textwrap import shorten
from time import monotonic
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from fathom.text.counting import counted
from flows.cli.printing import dollars, printable

if TYPE_CHECKING:
    from fathom.telemetry.progress import Event

_LABELS = {
    "plan": "plan: ",
    "round": "",
    "step": "step ",
    "tool": "",
    "reflection": "reflection: ",
    "section": "writing: ",
    "speed": "",
    "warning": "warning: ",
}
"""What is put before the message of each kind of event that is shown."""
_KEPT = {"plan": "bold", "speed": "dim", "warning": "yellow"}
"""Styles of the kinds whose lines stay on a terminal; the others replace each other in the live line."""


class Watch:
    """Follows a run on stderr: a live line on a terminal, one line an event elsewhere, nothing when quiet."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False)
        self._quiet = quiet
        self._live = Live(self, console=self.console, transient=True, redirect_stdout=False, refresh_per_second=8)
        self._spinner = Spinner("dots")
        self._began = monotonic()
        self._phase = "starting"
        self._done = self._total = self._tools = self._models = self._tokens = 0
        self._cost: float | None = 0.0

    def __enter__(self) -> Self:
        if self.console.is_terminal and not self._quiet:
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._live.stop()

    def say(self, line: str, style: str = "") -> None:
        """Show a line that stays."""
        if not self._quiet:
            self.console.print(Text(printable(line), style=style), soft_wrap=True)

    def __call__(self, event: Event) -> None:
        """Count and show an event of the run."""
        self._done, self._total = event.done or self._done, event.total or self._total
        self._tools += event.kind == "tool"
        self._models += event.calls
        self._tokens += event.tokens
        self._cost = None if self._cost is None or event.cost_usd is None else self._cost + event.cost_usd
        if event.kind not in _LABELS or not event.message:
            return
        limit = 500 if event.kind == "warning" else 150
        line = _LABELS[event.kind] + shorten(event.message, limit, placeholder=" …")
        if event.kind not in ("speed", "warning"):
            self._phase = line
        if not self._live.is_started:
            self.say(f"{monotonic() - self._began:6.1f} s  {line}")
        elif event.kind in _KEPT:
            self.say(line, _KEPT[event.kind])

    def __rich__(self) -> RenderableType:
        """Draw the live lines: what the run is doing, and what it has used so far."""
        self._spinner.update(text=Text(printable(self._phase), no_wrap=True, overflow="ellipsis"))
        minutes, seconds = divmod(int(monotonic() - self._began), 60)
        parts = [f"steps {self._done}/{self._total}"] if self._total else []
        parts += [counted(self._tools, "tool call"), counted(self._models, "model call")]
        if self._models:
            parts += [f"{self._tokens:,} tokens", dollars(self._cost)]
        line = "  " + " · ".join([*parts, f"{minutes}:{seconds:02}"])
        return Group(self._spinner, Text(line, style="dim", no_wrap=True, overflow="ellipsis"))
