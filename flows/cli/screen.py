"""What a person sees of a run in the shell: progress on stderr, results on stdout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from textwrap import shorten
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from fathom.telemetry.progress import Event

if TYPE_CHECKING:
    from fathom.models import Metrics, Plan, RunResult
    from fathom.run.estimate import Bounds, PhaseEstimate
    from flows.cli.doctor import Finding
    from flows.cli.listing import RunRow
    from flows.replay import ReplayedFile
    from flows.runs import StoredRun

_SHOWN = ("plan", "round", "step", "tool", "reflection", "section", "warning")
_KEPT = ("plan", "warning")  # on a terminal; the rest passes by in the live line
_MARKS = {"todo": "○", "in_progress": "◐", "done": "●", "blocked": "✗"}


def printable(text: str) -> str:
    """Return a text without the control characters that titles and pages from the web may carry."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


class Watch:
    """Follows a run on stderr: a live line on a terminal, a line an event elsewhere, nothing when quiet.

    It is the callback for `fathom.progress.listen`.
    """

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
        self._began = monotonic()
        if self.console.is_terminal and not self._quiet:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live.is_started:
            self._live.stop()

    def say(self, line: str, style: str = "") -> None:
        """Show a line that stays."""
        if not self._quiet:
            self.console.print(Text(printable(line), style=style), soft_wrap=True)

    def __call__(self, event: Event) -> None:
        """Take in an event of the run."""
        self._done, self._total = event.done or self._done, event.total or self._total
        self._tools += event.kind == "tool"
        self._models += event.calls
        self._tokens += event.tokens
        self._cost = None if self._cost is None or event.cost_usd is None else self._cost + event.cost_usd
        if event.kind not in _SHOWN or not event.message:
            return
        line = _line(event)
        if event.kind != "warning":
            self._phase = line
        if self._live.is_started:
            if event.kind in _KEPT:
                self.say(line, "yellow" if event.kind == "warning" else "bold")
        else:
            self.say(f"{monotonic() - self._began:6.1f} s  {line}")

    def __rich__(self) -> RenderableType:
        """Draw the live lines: what is being done, and what it took so far."""
        self._spinner.update(text=Text(printable(self._phase), no_wrap=True, overflow="ellipsis"))
        minutes, seconds = divmod(int(monotonic() - self._began), 60)
        parts = [f"steps {self._done}/{self._total}"] if self._total else []
        parts += [_count(self._tools, "tool call"), _count(self._models, "model call")]
        if self._models:
            parts += [f"{self._tokens:,} tokens", _cost(self._cost)]
        line = "  " + " · ".join([*parts, f"{minutes}:{seconds:02}"])
        return Group(self._spinner, Text(line, style="dim", no_wrap=True, overflow="ellipsis"))


def _line(event: Event) -> str:
    before = {"step": "step ", "section": "writing: ", "reflection": "reflection: ", "warning": "warning: "}
    limit = 500 if event.kind == "warning" else 150
    return before.get(event.kind, "") + shorten(event.message, limit, placeholder=" …")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _cost(cost_usd: float | None) -> str:
    return "price unknown" if cost_usd is None else f"${cost_usd:.4f}"


def metrics_line(metrics: Metrics) -> str:
    """Return what a run took, in one line."""
    parts = [_count(metrics.tool_calls, "tool call"), _count(metrics.llm_calls, "model call")]
    if metrics.llm_calls:
        parts += [f"{metrics.prompt_tokens + metrics.completion_tokens:,} tokens", _cost(metrics.cost_usd)]
    if metrics.raw_tokens:
        parts.append(
            f"{metrics.raw_tokens:,} tokens read, {max(0.0, metrics.context_reduction):.0%} of them kept out of context"
        )
    return ", ".join([*parts, f"{metrics.seconds:.1f} s"])


def summary(result: RunResult, address: str = "", reference: str = "") -> str:
    """Return what came of a run and where it lies, a line each.

    Args:
        result: of the run.
        address: of the run's page in the Prefect UI.
        reference: what `fathom show` takes for the run.
    """
    status = result.status.value.replace("_", " ")
    rows = {
        "answer": result.answer or "",
        "report": result.report or "none",
        "artifacts": result.artifacts,
        "sources": f"{len(result.sources)} {'cited' if result.report else 'found'}",
        "took": metrics_line(result.metrics),
        "run": address or result.run_id,
        "read it": f"fathom show {reference}" if result.report and reference else "",
    }
    head = f"{result.plan_title}: {status}" + (f" ({result.reason})" if result.reason else "")
    return printable("\n".join([head, *(f"  {name:<10} {value}" for name, value in rows.items() if value)]))


def show_rows(rows: Sequence[RunRow]) -> None:
    """Show a list of runs."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("run", "started", "state"):
        table.add_column(heading, no_wrap=True)
    table.add_column("query", ratio=1)
    table.add_column("folder", overflow="fold")
    for row in rows:
        cells = (row.run_id[:8], row.started[:16].replace("T", " "), row.state, row.query, PurePath(row.folder).name)
        table.add_row(*(Text(" ".join(printable(cell).split())) for cell in cells))
    Console(highlight=False).print(table if rows else "No runs yet.")


def show_estimate(phases: Sequence[PhaseEstimate]) -> None:
    """Show what a run would take, by phase, as is usual and at most."""
    from fathom.run.estimate import Bounds

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("phase")
    for heading in ("tool calls", "model calls", "1,000 tokens", "dollars"):
        table.add_column(heading, justify="right")
    for phase in phases:
        dollars = "unknown" if phase.usd is None else _bounds(phase.usd, ",.3f")
        counts = [_bounds(bounds, ",.0f") for bounds in (phase.tool_calls, phase.model_calls)]
        thousands = Bounds(phase.tokens.usual / 1000, phase.tokens.most / 1000)
        table.add_row(phase.phase, *counts, _bounds(thousands, ",.1f"), dollars)
    console = Console(highlight=False)
    console.print(table)
    console.print("\nEach as is usual, and at most; the whole run is bounded by its budget.", style="dim")


def _bounds(bounds: Bounds, form: str) -> str:
    return f"{bounds.usual:{form}} - {bounds.most:{form}}" if bounds.most else "0"


def show_replayed(files: Sequence[ReplayedFile]) -> None:
    """Show what a replay wrote, and whether it is what the run left."""
    console = Console(highlight=False)
    for file in files:
        style = "green" if file.state == "same" else "red"
        console.print(Text.assemble((f"{file.state:<10}", style), f"{file.name}, {file.bytes:,} bytes"))


def show_findings(findings: Sequence[Finding]) -> None:
    """Show what the doctor found."""
    console = Console(highlight=False)
    for finding in findings:
        style = {"ok": "green", "off": "yellow", "broken": "red"}[finding.state]
        line = Text.assemble((f"{finding.state:<7}", style), f"{finding.name:<13}{finding.detail}")
        console.print(line, soft_wrap=True)
        if finding.how:
            console.print(Text(f"{'':20}{finding.how}", style="dim"), soft_wrap=True)


def show_run(run: StoredRun) -> None:
    """Show a run with its report: rendered on a terminal, the report's own Markdown when it is piped."""
    console = Console(highlight=False)
    if not console.is_terminal and run.report:
        console.file.write(run.report)
        return
    if run.result:
        console.print(Text(summary(run.result)), soft_wrap=True)
    else:
        console.print(Text(printable(f"{run.query}: not finished\n  artifacts  {run.artifacts}")), soft_wrap=True)
        console.print(Text(f"  finish it  fathom resume {run.run_id[:8]}"))
    if run.plan:
        console.print(Text(_checklist(run.plan)))
    if run.report:
        from rich.markdown import Markdown

        console.print(Markdown(printable(run.report)))


def _checklist(plan: Plan) -> str:
    steps = (f"  {_MARKS[step.status.value]} {step.step_id}. {step.title} ({step.status.value})" for step in plan.steps)
    return printable("\n".join(["", *(line.replace("_", " ") for line in steps), ""]))
