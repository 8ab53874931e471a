"""What a model was asked and what came of it, by role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from pydantic import ValidationError

from fathom.roles import SPECS, Text
from tests.model.recording import Exchange

__all__ = ["HEAD", "Counts", "counted", "is_valid", "table"]

HEAD = ("role", "requests", "valid", "too long", "given up", "prompt tokens", "completion tokens", "seconds")


@dataclass
class Counts:
    """Requests of a role: with a valid answer, refused as too long for the window, given up by Fathom."""

    role: str
    requests: int = 0
    valid: int = 0
    too_long: int = 0
    given_up: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def add(self, exchange: Exchange) -> None:
        """Count a request."""
        self.requests += 1
        self.valid += is_valid(exchange)
        self.too_long += exchange.status == 400 and "context" in exchange.text
        self.given_up += exchange.left
        self.prompt_tokens += exchange.usage.get("prompt_tokens", 0)
        self.completion_tokens += exchange.usage.get("completion_tokens", 0)
        self.seconds += exchange.seconds


def is_valid(exchange: Exchange) -> bool:
    """Return whether an answer is complete and, as it came, of its role's type; prose must have a word.

    Fathom may take more, such as the whole sentences of prose that was cut off.
    """
    if exchange.status != 200 or exchange.left or exchange.finished != "stop":
        return False
    kind = SPECS[exchange.role].answer if exchange.role in SPECS else Text
    if kind is Text:
        return any(map(str.isalpha, exchange.text))
    try:
        kind.model_validate_json(exchange.text)
    except ValidationError:
        return False
    return True


def counted(exchanges: Sequence[Exchange]) -> dict[str, Counts]:
    """Return the counts of each role, in the order of their first requests."""
    found: dict[str, Counts] = {}
    for exchange in exchanges:
        found.setdefault(exchange.role, Counts(exchange.role)).add(exchange)
    return found


def table(exchanges: Sequence[Exchange]) -> str:
    """Return the counts by role, and of the whole, as the lines of a table; given-up requests have no tokens."""
    whole = Counts("whole")
    for exchange in exchanges:
        whole.add(exchange)
    rows = [HEAD, *(astuple(counts) for counts in (*counted(exchanges).values(), whole))]
    cells = [[f"{cell:,.0f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for role, *numbers in cells:
        lines.append("  ".join([role.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])]))
    return "\n".join(lines)
