"""The record of what commits measured: `python -m benchmarks.history` appends one line to `benchmarks/history.jsonl`.

A line has the commit, the machine, the versions, the counts of `benchmarks.guard` and the medians of three runs of
`benchmarks.pipeline`. Times of different machines cannot be compared: `benchmarks.compare` measures two commits on one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.trees import Tree, git

HISTORY = Path(__file__).with_name("history.jsonl")
PACKAGES = ("prefect", "litellm", "pydantic")
RUNS = 3


def main() -> None:
    """Measure the present commit and append its line."""
    argparse.ArgumentParser(
        prog="python -m benchmarks.history", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    if changed := git("status", "--porcelain", "--untracked-files=no"):
        raise SystemExit(f"Commit first: a line names the commit that it measured. Not committed:\n{changed}")
    row = {
        "commit": git("rev-parse", "HEAD"),
        "date": git("show", "--no-patch", "--format=%cs", "HEAD"),
        "machine": _machine(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "counts": Tree().counts(),
        "medians": {name: statistics.median(values) for name, values in Tree().timed(RUNS).items()},
    }
    with HISTORY.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(f"benchmarks/{HISTORY.name} has a line more: commit it.")


def _machine() -> dict[str, Any]:
    """Return what a reader must know of this machine, without its name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
    }


if __name__ == "__main__":
    main()
