"""What the pipeline itself costs, against scripted providers of known speed: `python -m benchmarks.pipeline`.

Starts a Prefect server and the stub providers of the tests as processes of their own, then runs `fathom research` in a
fresh process, as a user would, several times. Times come from the stub's log and from the operating system's own
accounting of the finished process; counts from the stub's log. Absolute seconds depend on the machine: compare within
one run, and read the medians.

    overhead        seconds from the first provider request to the end of the process, less those in which at least one
                    request was under way: what the pipeline adds to the critical path of provider calls
    ms per task     milliseconds that one durable task run costs beyond its own work, see `benchmarks.tasks`
    first call      seconds from the start of the process to the first provider request
    cpu         processor seconds of the process; `cpu_imports` is the same as a multiple of what importing Prefect and
                litellm takes on this machine, which holds where machines differ
    memory          peak resident set of the process
    flushes         to the disk, by the process (`benchmarks.flushes`)
    prompt a page   prompt tokens of all model calls, divided by the pages whose text was read
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fathom.flows.server import server_command

ROOT = Path(__file__).parent.parent
QUERY = "How do tides form on moons with liquid methane seas?"


@dataclass
class Run:
    """One measured run; times in seconds, memory in MB."""

    wall: float
    critical_path: float
    overhead: float
    first_call: float
    cpu: float
    cpu_imports: float
    memory_mb: float
    read_mb: float
    flushes: int
    task_runs: int
    ms_per_task: float
    llm_calls: int
    tool_calls: int
    prompt_tokens: int
    pages: int
    prompt_tokens_per_page: float
    largest_prompt: int
    context_reduction: float


@dataclass
class Observed:
    """What one process printed, took and asked its providers; times in seconds, memory in MB."""

    printed: bytes
    wall: float
    critical_path: float
    first_call: float
    overhead: float
    cpu: float
    memory_mb: float
    requests: list[dict[str, Any]]


def environment(home: Path, **extra: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": str(home / "bytecode"),  # an installation has it, and a checkout may not
        "PREFECT_HOME": str(home / ".prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        **extra,
    }


@contextmanager
def server(home: Path, port: int) -> Iterator[str]:
    """Run a Prefect server."""
    command = server_command(port)
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment(home), stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}/api"
            _wait_for(f"{url}/health")
            yield url
        finally:
            process.terminate()
            process.wait(20)


@contextmanager
def stubs(home: Path, log: Path, options: list[str]) -> Iterator[str]:
    """Run the scripted providers and return their address."""
    port_file = log.with_suffix(".port")
    command = [sys.executable, "-m", "tests.stubs", "--port-file", str(port_file), "--log", str(log), *options]
    process = subprocess.Popen(command, env=environment(home), cwd=ROOT)
    try:
        while not port_file.exists():
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port_file.read_text().strip()}"
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(url: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _covered(spans: list[tuple[float, float]]) -> float:
    """Return the length of a union of intervals."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _task_runs(api: str, flow_run_id: str) -> int:
    body = json.dumps({"task_runs": {"flow_run_id": {"any_": [flow_run_id]}}}).encode()
    request = urllib.request.Request(f"{api}/task_runs/count", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return int(json.load(response))


def _ms_per_task(home: Path, api: str) -> float:
    command = [sys.executable, "-m", "benchmarks.tasks"]
    env = environment(home, PREFECT_API_URL=api, PREFECT_LOGGING_LEVEL="ERROR")
    return float(subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def imports(home: Path) -> float:
    """Return the processor seconds that importing Prefect and litellm takes: the unit of `cpu_imports`."""
    command = [sys.executable, "-c", "import prefect, litellm"]
    taken: list[float] = []
    for _ in range(3):
        process = subprocess.Popen(command, env=environment(home, LITELLM_LOCAL_MODEL_COST_MAP="True"))
        _pid, _status, used = os.wait4(process.pid, 0)
        taken.append(used.ru_utime + used.ru_stime)
    return statistics.median(taken)


def measure(api: str, home: Path, options: list[str], arguments: list[str], unit: float) -> Run:
    """Run the command line once and read off what it cost; `unit` is as of `imports`."""
    with tempfile.TemporaryDirectory(dir=home) as folder:
        log = Path(folder) / "stub.jsonl"
        with stubs(home, log, options) as url:
            env = environment(
                home,
                PREFECT_API_URL=api,
                OPENAI_API_KEY="stub",
                OPENAI_BASE_URL=f"{url}/v1",
                TAVILY_API_KEY="stub",
                TAVILY_BASE_URL=url,
            )
            counted = Path(folder) / "flushes"
            command = [sys.executable, "-m", "benchmarks.flushes", str(counted)]
            command += ["research", QUERY, "--model", "openai/stub", "--json"]
            command += ["--quiet", "--fresh", "--artifacts", str(Path(folder) / "artifacts"), *arguments]
            seen = observe(command, env, ROOT, log)
        return _read_off(seen, flushes=int(counted.read_text()), unit=unit, home=home, api=api)


def observe(command: list[str], env: dict[str, str], folder: Path, log: Path) -> Observed:
    """Run a command in a folder to its end; `log` is the log of its providers.

    Raises:
        SystemExit: it failed.
    """
    began = time.monotonic()
    process = subprocess.Popen(command, env=env, cwd=folder, stdout=subprocess.PIPE)
    assert process.stdout
    printed = process.stdout.read()
    _pid, status, used = os.wait4(process.pid, 0)
    ended = time.monotonic()
    if status:
        raise SystemExit(f"the run failed: {printed.decode()}")
    requests = _spans(log)
    critical, first = _covered([(r["start"], r["end"]) for r in requests]), min(r["start"] for r in requests)
    return Observed(
        printed,
        wall=ended - began,
        critical_path=critical,
        first_call=first - began,
        overhead=ended - first - critical,
        cpu=used.ru_utime + used.ru_stime,
        memory_mb=used.ru_maxrss / 1024,
        requests=requests,
    )


def _spans(log: Path) -> list[dict[str, Any]]:
    """Return the answered requests of a stub's log, with their start and end."""
    started: dict[int, float] = {}
    answered: list[dict[str, Any]] = []
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "start":
            started[event["n"]] = event["time"]
        else:
            answered.append({**event, "start": started[event["n"]], "end": event["time"]})
    return answered


def _read_off(seen: Observed, *, flushes: int, unit: float, home: Path, api: str) -> Run:
    result = json.loads(seen.printed)
    llm = [r["usage"]["prompt_tokens"] for r in seen.requests if r["kind"] == "llm"]
    artifacts = [json.loads(p.read_text()) for p in Path(result["artifacts"]).glob("*__web_*.json")]
    texts = {page["source_id"]: page["text"] for found in artifacts for page in found["results"] if page["full"]}
    return Run(
        wall=seen.wall,
        critical_path=seen.critical_path,
        overhead=seen.overhead,
        first_call=seen.first_call,
        cpu=seen.cpu,
        cpu_imports=seen.cpu / unit,
        memory_mb=seen.memory_mb,
        read_mb=sum(map(len, texts.values())) / 1e6,
        flushes=flushes,
        task_runs=_task_runs(api, result["run_id"]),
        ms_per_task=_ms_per_task(home, api),
        llm_calls=len(llm),
        tool_calls=len(seen.requests) - len(llm),
        prompt_tokens=sum(llm),
        pages=len(texts),
        prompt_tokens_per_page=sum(llm) / len(texts),
        largest_prompt=max(llm),
        context_reduction=result["metrics"]["context_reduction"],
    )


DELAYS = ["--llm-delay", "0.5", "--search-delay", "0.3"]
TARGETS = {
    "overhead": "at most 1.0",
    "ms_per_task": "at most 15",
    "flushes": "at most 40",
    "first_call": "at most 2.5",
    "cpu_imports": "at most 1.6",
    "memory_mb": "at most 250",
    "prompt_tokens_per_page": "below 3000",
    "context_reduction": "at least 0.80",
}


def main() -> None:
    """Print the table, or JSON lines."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--page-bytes", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--steps", type=int, default=3, help="of the plan, at most 5")
    parser.add_argument("--breadth", type=int, default=2, help="searches of a step, at most 10")
    parser.add_argument("--port", type=int, default=24_217, help="of the Prefect server this starts")
    parser.add_argument("--json", action="store_true", help="one JSON line a run")
    options = parser.parse_args()
    arguments = ["--depth", "2", "--breadth", str(options.breadth)]
    scripted = [*DELAYS, "--steps", str(options.steps), "--breadth", str(options.breadth)]
    with tempfile.TemporaryDirectory(prefix="fathom-bench-") as folder:
        home = Path(folder)
        with server(home, options.port) as api:
            unit = imports(home)
            measure(api, home, ["--page-bytes", "4000"], ["--depth", "1"], unit)  # warms file caches and the server
            sizes: dict[int, list[Run]] = {}
            for size in options.page_bytes:
                stub = [*scripted, "--page-bytes", str(size)]
                sizes[size] = [measure(api, home, stub, arguments, unit) for _ in range(options.runs)]
    if options.json:
        for size, runs in sizes.items():
            print("\n".join(json.dumps({"page_bytes": size, **asdict(run)}) for run in runs))
        return
    print(f"importing Prefect and litellm takes {unit:.2f} s of processor time")
    for size, runs in sizes.items():
        print(
            f"\n{len(runs)} runs, {options.steps} steps x 2 rounds, model 500 ms, search 300 ms, pages of {size} bytes"
        )
        _print_table(runs)
    if len(sizes) > 1:
        (small, *_, large) = sizes.values()
        more = _median(large, "read_mb") - _median(small, "read_mb")
        slope = (_median(large, "cpu") - _median(small, "cpu")) / more
        print(f"\neach further megabyte read: {slope:.2f} s of processor time (target: at most 0.5),")
        print(f"{slope / unit:.2f} times the imports (target: at most 0.12)")


def _median(runs: list[Run], name: str) -> float:
    return statistics.median(float(getattr(run, name)) for run in runs)


def _print_table(runs: list[Run]) -> None:
    print(f"{'':24}{'min':>10}{'median':>10}{'max':>10}   target")
    for name in asdict(runs[0]):
        values = [float(getattr(run, name)) for run in runs]
        row = "".join(f"{value:10.2f}" for value in (min(values), statistics.median(values), max(values)))
        print(f"{name:24}{row}   {TARGETS.get(name, '')}")


if __name__ == "__main__":
    main()
