"""What traces cost a run: `python -m benchmarks.tracing`.

Runs against scripted providers without a Prefect server, without traces, with a collector, and with an endpoint that is
down, each in processes of its own. The collector is in this process, so its work is not in the numbers.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 8
ROUNDS = 3
DOWN = "http://127.0.0.1:9"


def measured(endpoint: str) -> float:
    """Return the processor seconds of a run in a new process."""
    command = [sys.executable, "-m", "benchmarks.tracing", "measure"]
    env = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
    return float(subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout)


def measure() -> float:
    """Return the processor seconds of a run in this process, the scripted providers included."""
    from tests.inprocess import investigated
    from tests.stubs import serving

    with serving() as stubs, tempfile.TemporaryDirectory() as folder:
        os.environ.update(stubs.env)
        asyncio.run(investigated(f"{folder}/first"))
        began = time.process_time()
        for number in range(RUNS):
            asyncio.run(investigated(f"{folder}/{number}"))
        return (time.process_time() - began) / RUNS


def main() -> None:
    """Print the table."""
    from tests.collector import collecting

    taken: dict[str, list[float]] = {"no traces": [], "a collector": [], "endpoint down": []}
    with collecting() as collector:
        for _ in range(ROUNDS):
            for name, endpoint in zip(taken, ("", collector.endpoint, DOWN), strict=True):
                taken[name].append(measured(endpoint))
        spans = len(collector.spans) / ROUNDS / (RUNS + 1)
    print(f"processor seconds a run of {spans:.0f} spans; medians of {ROUNDS} times {RUNS} runs")
    for name, seconds in taken.items():
        print(f"{name:<14}{statistics.median(seconds):6.3f}")


if __name__ == "__main__":
    if "measure" in sys.argv:
        print(measure())
    else:
        main()
