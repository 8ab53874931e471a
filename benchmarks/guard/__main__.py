"""Guards against regressions that no test sees: `python -m benchmarks.guard [--accept] [--json]`.

Counts what five measurements take and give (model calls, tokens, requests, bytes, claims, right answers), and compares
them with `benchmarks/guard/counts.json`. Nothing depends on time, so it holds on a busy machine. A count that is worse
ends it with exit code 1. If the change is meant, `--accept` writes the new counts: commit them with the change, and say
in the message why.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.guard.measurements import MEASUREMENTS, Counts
from benchmarks.guard.rules import Change, changes

ACCEPTED = Path(__file__).with_name("counts.json")


def main() -> None:
    """Measure, compare, and end with exit code 1 if a count is worse."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.guard", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accept", action="store_true", help="write the counts of now as the accepted ones")
    parser.add_argument("--json", action="store_true", help="only print the counts of now")
    chosen = parser.parse_args()
    now = measured()
    if chosen.json:
        print(json.dumps(now))
        return
    accepted = json.loads(ACCEPTED.read_text(encoding="utf-8")) if ACCEPTED.exists() else {}
    found = list(changes(accepted, now))
    different = [change for change in found if change.verdict != "same"]
    if different:
        print(table(different))
    if chosen.accept:
        ACCEPTED.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
        print(f"{len(found)} counts are accepted. Commit {ACCEPTED.name}, and say in the message why they changed.")
    elif worse := sum(change.verdict in ("worse", "gone", "new") for change in different):
        print(
            f"{worse} of {len(found)} counts are worse than accepted, or not known. If that is meant: "
            "make bench-guard ARGS=--accept",
            file=sys.stderr,
        )
        raise SystemExit(1)
    elif different:
        print("Nothing is worse. Keep what is better: make bench-guard ARGS=--accept")
    else:
        print(f"{len(found)} counts are as accepted.")


def measured() -> Mapping[str, Counts]:
    """Return the counts of all measurements."""
    return {name: measure() for name, measure in MEASUREMENTS.items()}


def table(found: Sequence[Change]) -> str:
    """Return changes as a Markdown table."""
    lines = ["| measurement | count | accepted | now | |", "|---|---|--:|--:|---|"]
    for change in found:
        accepted, now = (("-" if value is None else f"{value:,}") for value in (change.accepted, change.now))
        lines.append(f"| {change.measurement} | {change.name} | {accepted} | {now} | {change.verdict} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
