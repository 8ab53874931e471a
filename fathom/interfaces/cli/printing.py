"""How commands print: JSON or a screen, and text from the web without its control characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from fathom.text.plain import counted

if TYPE_CHECKING:
    from fathom.models import Metrics, Report, RunResult, Unanswered

T = TypeVar("T")

MARKS = {"todo": "○", "in_progress": "◐", "done": "●", "blocked": "✗"}
"""How the status of a step is drawn."""


def output(data: T, screen: Callable[[T], object], *, as_json: bool) -> None:
    """Print models or dataclasses as JSON, or with a function that shows them to a person."""
    if as_json:
        from pydantic_core import to_json

        typer.echo(to_json(data, indent=2).decode())
    else:
        screen(data)


def digits_of(ids: Collection[str]) -> int:
    """Return how many first digits tell runs apart, at least 8: ids that a schedule makes at once begin alike."""
    return next(length for length in count(8) if len({run_id[:length] for run_id in ids}) == len(set(ids)))


def printable(text: str) -> str:
    """Return a text without the control characters that titles and pages from the web may contain."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


def one_line(text: str) -> str:
    """Return a printable text without line breaks."""
    return " ".join(printable(text).split())


def line(*parts: str | tuple[str, str]) -> None:
    """Print one line; a part is a text or a text with its style."""
    row("", *parts)


def row(head: str | tuple[str, str] | Text, *parts: str | tuple[str, str]) -> None:
    """Print a line that begins with a head; on a terminal, what follows it is wrapped between words, below itself.

    A word that is longer than a line, such as an address, stays in one piece.
    """
    console = Console(highlight=False)
    first, body = Text.assemble(head), Text.assemble(*parts)
    width = max(20, console.width - first.cell_len)
    if (
        console.is_terminal and width < body.cell_len <= console.width - 2 and " " not in body.plain
    ):  # an address has a line of its own
        console.print(first, soft_wrap=True)
        first = Text("  ")
    for text in _wrapped(body, width) if console.is_terminal else [body]:
        text.rstrip()
        console.print(first + text, soft_wrap=True)
        first = Text(" " * first.cell_len)


def _wrapped(text: Text, width: int) -> list[Text]:
    """Return a text as lines of whole words; unlike Rich's own wrapping, it never breaks or cuts a long one."""
    breaks, start = list[int](), 0
    for word in re.finditer(r"\S+", text.plain):
        if word.start() > start and cell_len(text.plain[start : word.end()]) > width:
            start = word.start()
            breaks.append(start)
    return list(text.divide(breaks))


_ANSWERED = {
    "partly": "these sources answer a part of the question",
    "maybe": "these quotations may answer the question; read them first",
    "no": "these sources do not answer the question; the report has what comes closest",
}


def dollars(cost_usd: float | None) -> str:
    """Return a cost as text; `cost` is None when a price is not known."""
    return "price unknown" if cost_usd is None else f"${cost_usd:.4f}"


def only_searched(searched: str) -> str:
    """Return the line that says, before a run starts, what it searches for want of documents and a web search."""
    how = "For your own files add --docs FOLDER (make: DOCS=FOLDER), for the web a search key: fathom doctor shows how."
    return f"Searching only {searched}. {how}"


def show_answer(report: Report) -> None:
    """Print the answer, its confidence, and the sources that it cites."""
    from rich.markdown import Markdown

    from fathom.report.markdown import render_answer

    console, answer = Console(highlight=False), printable(render_answer(report))
    if console.is_terminal:
        console.print(Markdown(answer))
    else:
        console.file.write(answer)


def show_summary(result: RunResult, address: str = "", reference: str = "") -> None:
    """Print the outcome of a run, with its page in the Prefect UI and what `fathom show` accepts for it."""
    from fathom.report.answer import MORE_TO_SEARCH

    ending = result.status.value.replace("_", " ")
    rows = [
        ("report", _from_here(page_of(result))),
        ("", "report.md beside it has the same as text" if result.report else ""),
        ("ended", f"{ending}: {result.reason}" if result.reason else ending),
        # Without a report, the reason above says it all; one with a report was not ended for want of evidence.
        ("", f"research ended because {result.stop}" if result.stop and result.report else ""),
        ("", _ANSWERED.get(result.answered or "", "")),
        ("scope", result.scope),
        ("changes", result.changes),
        ("searched", f"{result.searched}; {MORE_TO_SEARCH}" if result.searched else ""),
        ("sources", f"{len(result.sources)} {'cited' if result.report else 'found'}"),
        ("used", _used(result.metrics)),
        ("files", "" if result.report else _from_here(result.artifacts)),
        ("run", address or result.run_id),
        ("read it", f"fathom show {reference}" if result.report and reference else ""),
        *(("warning", warning) for warning in result.warnings),
    ]
    for name, value in rows:
        if value:
            row((f"  {name:<9}", "dim"), one_line(value))
    if result.unanswered:
        _show_unanswered(result.unanswered)


def open_page(result: RunResult) -> None:
    """Open the page of a report in the browser, or say on stderr why that cannot be done."""
    import webbrowser

    page = page_of(result)
    if not page:
        said = "there is no report to open"
    elif "://" in page:
        said = f"{page} is not on this machine; fathom export {result.run_id[:8]} --to html brings it here"
    elif not Path(page).is_file():
        said = f"{page} is gone"
    elif webbrowser.open(Path(page).as_uri()):
        return
    else:
        said = f"no browser could be started; open {page} in one"
    typer.echo(f"fathom: {said}", err=True)


def _from_here(path: str) -> str:
    """Return a path relative to the current folder, if that is shorter and a person reads it."""
    here = f"{Path.cwd()}/"
    return path.removeprefix(here) if Console().is_terminal else path


def page_of(result: RunResult) -> str:
    """Return the path of a run's HTML report; empty if it has none."""
    return f"{result.report.removesuffix('report.md')}report.html" if result.report else ""


def _show_unanswered(unanswered: Unanswered) -> None:
    from fathom.report.unanswered import parts_of, source_line

    for part in parts_of(unanswered):
        line((f"\n{part.heading}", "bold"))
        for passage in part.passages:
            row("  ", f"“{one_line(passage.text)}”")
            row("    ", (one_line(source_line(passage)), "dim"))
        for item in part.items:
            row("  - ", one_line(item))


def _used(metrics: Metrics) -> str:
    parts = [counted(metrics.tool_calls, "tool call")]
    if metrics.llm_calls:
        tokens = metrics.prompt_tokens + metrics.completion_tokens
        cached = f" ({metrics.cached_tokens:,} cached)" if metrics.cached_tokens else ""
        parts += [counted(metrics.llm_calls, "model call"), f"{tokens:,} tokens{cached}"]
    if metrics.llm_calls or metrics.cost_usd != 0:
        parts.append(dollars(metrics.cost_usd))
    if metrics.raw_tokens:
        kept_out = f" ({max(0.0, metrics.context_reduction):.0%} kept out of context)" if metrics.llm_calls else ""
        parts.append(f"{metrics.raw_tokens:,} tokens of text read{kept_out}")
    return ", ".join([*parts, f"{metrics.seconds:.1f} s"])
