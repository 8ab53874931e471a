"""How commands print: JSON or a screen, and text from the web without its control characters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import typer
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from fathom.models import Metrics, RunResult

T = TypeVar("T")


def output(data: T, screen: Callable[[T], object], *, as_json: bool) -> None:
    """Print models or dataclasses as JSON, or with a function that shows them to a person."""
    if as_json:
        from pydantic_core import to_json

        typer.echo(to_json(data, indent=2).decode())
    else:
        screen(data)


def printable(text: str) -> str:
    """Return a text without the control characters that titles and pages from the web may contain."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


def one_line(text: str) -> str:
    """Return a printable text without line breaks."""
    return " ".join(printable(text).split())


def line(*parts: str | tuple[str, str]) -> None:
    """Print one line, which the terminal wraps; a part is a text or a text with its style."""
    Console(highlight=False).print(Text.assemble(*parts), soft_wrap=True)


def counted(number: int, noun: str) -> str:
    """Return `1 call`, `2 calls`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def dollars(cost_usd: float | None) -> str:
    """Return a cost; None when a price is not known."""
    return "price unknown" if cost_usd is None else f"${cost_usd:.4f}"


def summary(result: RunResult, address: str = "", reference: str = "") -> str:
    """Return the outcome of a run, with its page in the Prefect UI and what `fathom show` accepts for it."""
    status = result.status.value.replace("_", " ")
    rows = {
        "answer": result.answer or "",
        "report": result.report or "none",
        "artifacts": result.artifacts,
        "sources": f"{len(result.sources)} {'cited' if result.report else 'found'}",
        "used": _used(result.metrics),
        "run": address or result.run_id,
        "read it": f"fathom show {reference}" if result.report and reference else "",
    }
    head = f"{result.plan_title}: {status}" + (f" ({result.reason})" if result.reason else "")
    lines = [(name, value) for name, value in rows.items() if value] + [("warning", line) for line in result.warnings]
    return printable("\n".join([head, *(f"  {name:<10} {value}" for name, value in lines)]))


def _used(metrics: Metrics) -> str:
    parts = [counted(metrics.tool_calls, "tool call"), counted(metrics.llm_calls, "model call")]
    if metrics.llm_calls:
        parts += [f"{metrics.prompt_tokens + metrics.completion_tokens:,} tokens", dollars(metrics.cost_usd)]
    if metrics.raw_tokens:
        kept_out = max(0.0, metrics.context_reduction)
        parts.append(f"{metrics.raw_tokens:,} tokens read ({kept_out:.0%} kept out of context)")
    return ", ".join([*parts, f"{metrics.seconds:.1f} s"])
