"""Add what this commit costs on this machine to `benchmarks/history.jsonl`: `python -m benchmarks.history`.

A line is a commit that was measured: which, when, on what machine, how busy that was, with which versions, the guard's
counts and the medians of a few times. Compare times only between lines of one machine; better, measure both commits in
turns with `make bench-compare`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.checkouts import ROOT, git
from benchmarks.timed import TIMED, counts, pipeline

HISTORY = ROOT / "benchmarks" / "history.jsonl"


def main() -> None:
    """Measure, and append a line."""
    parser = argparse.ArgumentParser(prog="make bench-record", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="of the pipeline; its medians are kept")
    options = parser.parse_args()
    if changed := git("status", "--porcelain", "--", ".", f":!{HISTORY.relative_to(ROOT)}"):
        raise SystemExit(f"Commit or stash these first, since what is recorded must be a commit:\n{changed}")
    commit, python = git("rev-parse", "HEAD"), Path(sys.executable)
    load = os.getloadavg()[0]  # before the runs add to it
    counted = counts(ROOT, python)
    runs = pipeline(ROOT, python, options.runs)
    line = {
        "commit": commit,
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load": round(load, 1),
        "versions": {
            "python": platform.python_version(),
            "fathom": version("fathom-research"),
            **{name: version(name) for name in ("prefect", "litellm")},
        },
        "counts": counted,
        "runs": options.runs,
        "medians": {name: round(statistics.median(run[name] for run in runs), 3) for name in TIMED},
    }
    with HISTORY.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    print(f"Added commit {commit[:9]} to {HISTORY.relative_to(ROOT)}: {json.dumps(line['medians'])}")


def machine() -> dict[str, str | int]:
    """Return what times depend on, and nothing that tells whose machine it is."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cores": os.cpu_count() or 0, "memory_gb": round(memory / 2**30), "processor": _processor()}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


if __name__ == "__main__":
    main()
