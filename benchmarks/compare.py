"""Measure two commits on this machine: `python -m benchmarks.compare A B` (`make bench-compare A=... B=...`).

Both are checked out beside this checkout and measured in turns, A B A B ..., each time in fresh processes, so that a
machine that gets busier slows both. A difference counts as more than noise only if the two ranges do not overlap.
Where both commits have the guard, its counts are compared too; once, as they are the same every time.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import NoReturn

from benchmarks.checkouts import Checkout, checked_out, find
from benchmarks.ending import ending
from benchmarks.timed import counts, pipeline

COUNTED = ": "
"""In the name of a count of the guard, between its measurement and the count."""

ENOUGH = 3  # rounds: ranges of fewer part by chance

Series = Mapping[str, Sequence[float]]
"""The values of each number, one a round."""


@dataclass(frozen=True)
class Spread:
    """Median and range of some values."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        values = (self.median, self.least, self.most)
        digits = 0 if self.median >= 100 or all(float(value).is_integer() for value in values) else 2
        median, least, most = (f"{value:,.{digits}f}" for value in values)
        return f"{median} ({least} to {most})"


@dataclass(frozen=True)
class Difference:
    """One number of both commits. `ratio` is B's median to A's, None if A's is 0; `beyond` means more than noise."""

    number: str
    a: Spread
    b: Spread
    ratio: float | None
    beyond: bool


def differences(a: Series, b: Series) -> list[Difference]:
    """Compare the numbers that both commits have."""
    return [_difference(name, a[name], b[name]) for name in a if name in b]


def _difference(name: str, values_a: Sequence[float], values_b: Sequence[float]) -> Difference:
    a, b = Spread.of(values_a), Spread.of(values_b)
    enough = COUNTED in name or min(len(values_a), len(values_b)) >= ENOUGH
    beyond = enough and (a.most < b.least or b.most < a.least)
    return Difference(name, a, b, b.median / a.median if a.median else None, beyond)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="make bench-compare", usage="make bench-compare A=commit B=commit [ROUNDS=5] [ARGS=--json]"
    )
    parser.add_argument("a", help="a commit, branch or tag")
    parser.add_argument("b", help="another")
    parser.add_argument("--rounds", type=_rounds, default=5, help="how often each is measured")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _ended)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell has switched it off
    a, b = find(options.a), find(options.b)
    try:
        with ExitStack() as stack:
            sides = [stack.enter_context(checked_out(commit)) for commit in (a, b)]
            first, second = _in_turns(sides, options.rounds)
    except KeyboardInterrupt as error:
        error.add_note("both checkouts are removed")
        raise
    found = differences(first, second)
    if options.json:
        print(json.dumps({"a": asdict(a), "b": asdict(b), "rounds": options.rounds, "numbers": [*map(asdict, found)]}))
    else:
        print(
            f"A is {a.short} ({a.name}), B is {b.short} ({b.name}); {options.rounds} rounds, median (least to most)\n"
        )
        print(table([each for each in found if COUNTED not in each.number or each.beyond]))
        if same := sum(COUNTED in each.number and not each.beyond for each in found):
            print(f"\n{same} counts of the guard are the same.")
        if options.rounds < ENOUGH:
            print(f"\nRanges of fewer than {ENOUGH} rounds part by chance, so no difference is marked: use ROUNDS=5.")


def table(found: Sequence[Difference]) -> str:
    """Return differences as lines of columns."""
    rows = [("number", "A", "B", "B / A", "")]
    for each in found:
        ratio = "-" if each.ratio is None else f"{each.ratio:.2f}"
        rows.append((each.number, str(each.a), str(each.b), ratio, "beyond the noise" if each.beyond else ""))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _in_turns(sides: Sequence[Checkout], rounds: int) -> list[dict[str, list[float]]]:
    series: list[dict[str, list[float]]] = [{} for _ in sides]
    for number in range(1, rounds + 1):
        for side, values in zip(sides, series, strict=True):
            print(f"round {number} of {rounds}: {side.commit.short}", file=sys.stderr)
            for name, value in pipeline(side.root, side.python)[0].items():
                values.setdefault(name, []).append(value)
    for side, values in zip(sides, series, strict=True):
        for measurement, counted in counts(side.root, side.python).items():
            values.update({f"{measurement}{COUNTED}{name}": [value] for name, value in counted.items()})
    return series


def _rounds(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError("a number of at least 1")
    return int(text)


def _ended(_signal: int, _frame: object) -> NoReturn:
    print("Ended from outside; both checkouts are removed.", file=sys.stderr)
    raise SystemExit(143)


if __name__ == "__main__":
    with ending():
        main()
