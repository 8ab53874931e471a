"""Two commits measured on one machine, in turns: `python -m benchmarks.compare A B [--rounds 5] [--json]`.

Both are checked out into folders of their own and measured by their own `benchmarks.pipeline`, A B A B and so on, so
that a busy minute falls on both. Prints medians with the lowest and highest value, the ratio of the medians, and
whether the difference is beyond the noise: it is if all values of one are below all of the other. Counts of
`benchmarks.guard` that differ follow. A round takes about a minute.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence

from benchmarks.guard.rules import changes
from benchmarks.guard.table import table
from benchmarks.trees import Tree, checked_out

Timed = Mapping[str, Sequence[float]]


def main() -> None:
    """Measure and print the tables, or JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commits", nargs=2, metavar="COMMIT", help="a hash, a branch or a tag")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (5)")
    parser.add_argument("--json", action="store_true", help="print every value as JSON")
    chosen = parser.parse_args()
    if chosen.rounds < 1:
        parser.error("--rounds must be 1 or more")
    try:
        with checked_out(chosen.commits[0]) as one, checked_out(chosen.commits[1]) as other:
            timed = _in_turns((one, other), chosen.rounds)
            counted = [tree.counts() if tree.has("benchmarks/guard") else None for tree in (one, other)]
    except KeyboardInterrupt:
        raise SystemExit("Stopped; nothing was measured to its end.") from None
    if chosen.json:
        print(
            json.dumps(
                [{"commit": c, "timed": t, "counts": n} for c, t, n in zip(chosen.commits, timed, counted, strict=True)]
            )
        )
        return
    print(timings(chosen.commits, timed))
    before, after = counted
    if before is None or after is None:
        print("\nOne of them has no benchmarks.guard: counts are not compared.")
    elif different := [change for change in changes(before, after) if change.verdict != "same"]:
        print(f"\n{table(different, chosen.commits)}")
    else:
        print("\nNo count differs.")


def _in_turns(trees: Sequence[Tree], rounds: int) -> list[dict[str, list[float]]]:
    found: list[dict[str, list[float]]] = [defaultdict(list) for _ in trees]
    for number in range(rounds):
        for values, tree in zip(found, trees, strict=True):
            for name, measured in tree.timed(runs=1).items():
                values[name] += measured
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return found


def timings(commits: Sequence[str], timed: Sequence[Timed]) -> str:
    """Return the timed numbers of two commits as a Markdown table."""
    lines = [f"| | {commits[0]} | {commits[1]} | ratio | beyond the noise |", "|---|--:|--:|--:|---|"]
    one, other = timed
    for name in one:
        ratio = statistics.median(other[name]) / (statistics.median(one[name]) or float("nan"))
        cells = [_spread(values[name]) for values in timed]
        lines.append(f"| {name} | {' | '.join(cells)} | {ratio:.2f} | {_beyond(one[name], other[name])} |")
    return "\n".join(lines)


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _beyond(one: Sequence[float], other: Sequence[float]) -> str:
    return "lower" if max(other) < min(one) else "higher" if min(other) > max(one) else "no"


if __name__ == "__main__":
    main()
