"""Many listeners on one server: `python -m benchmarks.serving --listeners 500 --runs 1 50`.

Starts a Prefect server and `fathom serve`, with a work pool that nobody serves, and writes events as runs would.

    start         from the start of the process to its first answer, median of `--starts`
    memory        resident memory of the server, before and with the listeners
    cpu           processor time of the server in percent of one core, while the events are written
    delay         from before an event is written to its arrival at a listener; on the same two cores as the listeners
    first byte    from the request to the first byte of its answer, all listeners asking at once

`--rate 300 --stored 5000` measures the list of runs instead: so many requests a second, whether or not earlier ones are
answered, to a server whose store has that many runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks.listing import fill
from benchmarks.timed import free_port
from fathom.flows.server import server_command
from fathom.storage.lease import RESULTS
from fathom.storage.store import ArtifactStore
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.audit_log import PENDING_FILE, AuditLog

ROOT = Path(__file__).parent.parent
POOL = "nobody"
PADDING = "x" * 700  # so that an event is as long as most are


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listeners", type=int, default=500)
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 50], help="over how many runs they are spread")
    parser.add_argument("--events", type=int, default=20, help="of each run, two in a second")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--rate", type=int, default=0, help="requests for the list of runs in a second")
    parser.add_argument("--stored", type=int, default=5_000, help="runs in the store of the list")
    parser.add_argument("--seconds", type=int, default=5, help="in which the list is asked for")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, _prefect(Path(folder)) as env:
        print(f"load: {', '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} cores")
        if options.rate:
            fill(Path(env["FATHOM_ARTIFACTS"]), options.stored)
            with _server(env) as (url, pid, _):
                print(asyncio.run(_lists(f"{url}/api/v1/runs", pid, options.rate, options.seconds)))
            return
        seconds = []
        for _ in range(options.starts):
            with _server(env) as (_, _, started):
                seconds.append(started)
        print(f"start: {statistics.median(seconds):.2f} s (median of {', '.join(f'{s:.2f}' for s in seconds)})\n")
        print("| listeners | runs | memory before | with them | cpu | delay, median | p95 | first byte, median | p95 |")
        print("|---|---|---|---|---|---|---|---|---|")
        for runs in options.runs:
            with _server(env) as (url, pid, _):
                print(asyncio.run(_measure(url, pid, Path(env["FATHOM_ARTIFACTS"]), runs, options)), flush=True)


async def _lists(url: str, pid: int, rate: int, seconds: int) -> str:
    """Ask for the list in an open loop. httpx is too slow for it: for each answer it looks at all waiting requests."""
    from aiohttp import ClientSession, ClientTimeout, TCPConnector

    took = list[float]()
    async with ClientSession(connector=TCPConnector(limit=200), timeout=ClientTimeout(120)) as client:

        async def ask() -> None:
            began = time.monotonic()
            async with client.get(url) as answer:
                assert answer.status == 200, answer.status
                await answer.read()
            took.append(time.monotonic() - began)

        await ask()  # a server that starts reads all runs once
        took.clear()
        began, cpu, asked = time.monotonic(), _cpu(pid), list[asyncio.Task[None]]()
        for number in range(rate * seconds):
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            asked.append(asyncio.create_task(ask()))
        await asyncio.gather(*asked)
        answered, used = len(took) / (time.monotonic() - began), (_cpu(pid) - cpu) / len(took)
    ordered = sorted(took)
    return (
        f"{rate} a second asked, {answered:.0f} answered; median {statistics.median(ordered):.3f} s, "
        f"p99 {ordered[int(0.99 * len(ordered))]:.3f} s; {used * 1000:.1f} ms of processor time each"
    )


async def _measure(url: str, pid: int, root: Path, runs: int, options: argparse.Namespace) -> str:
    asked = {"question": "What is a descriptor in Python?", "settings": {"profile": "quick"}}
    async with httpx.AsyncClient(base_url=url, timeout=120) as client:
        ids = [(await client.post("/api/v1/runs", json=asked)).json()["id"] for _ in range(runs)]
    store = ArtifactStore(str(root))
    logs = [AuditLog(store, f"{RESULTS}/{run_id}/{PENDING_FILE}") for run_id in ids]
    before = _memory(pid)
    delays, firsts = list[float](), list[float]()
    listeners = [
        asyncio.create_task(_listen(url, ids[number % runs], options.events, delays, firsts))
        for number in range(options.listeners)
    ]
    while len(firsts) < options.listeners:  # noqa: ASYNC110 - a benchmark
        await asyncio.sleep(0.1)
    await asyncio.sleep(2)
    cpu, began = _cpu(pid), time.monotonic()

    async def write(log: AuditLog, number: int) -> None:
        await asyncio.sleep(0.5 * number / runs)
        for _ in range(options.events):
            await log.record(AuditType.steered, "user", "event", author="bench", padding=PADDING, sent=time.time())
            await asyncio.sleep(0.5)

    await asyncio.gather(*(write(log, number) for number, log in enumerate(logs)))
    busy = 100 * (_cpu(pid) - cpu) / (time.monotonic() - began)
    memory = _memory(pid)
    await asyncio.gather(*listeners)
    assert len(delays) == options.listeners * options.events, "every listener had every event"
    return (
        f"| {options.listeners} | {runs} | {before:.0f} MB | {memory:.0f} MB | {busy:.0f} % "
        f"| {_spread(delays)} | {_spread(firsts)} |"
    )


async def _listen(url: str, run_id: str, events: int, delays: list[float], firsts: list[float]) -> None:
    address = httpx.URL(url)
    began = time.monotonic()
    reader, writer = await asyncio.open_connection(address.host, address.port, limit=2**20)
    writer.write(f"GET /api/v1/runs/{run_id}/events HTTP/1.1\r\nHost: {address.netloc.decode()}\r\n\r\n".encode())
    first = await reader.readline()
    assert b"200" in first, first
    firsts.append(time.monotonic() - began)
    heard = 0
    while heard < events:
        line = await reader.readline()
        assert line, "the stream was cut off"
        if line.startswith(b"data: ") and b'"sent"' in line:
            heard += 1
            delays.append(time.time() - json.loads(line[6:])["data"]["sent"])
    writer.close()


def _spread(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    return f"{statistics.median(ordered):.2f} s | {ordered[int(0.95 * len(ordered))]:.2f} s"


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def _cpu(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _prefect(folder: Path) -> Iterator[dict[str, str]]:
    """A Prefect server of its own; yields what a command needs to use it."""
    port = free_port()
    env = {
        **os.environ,
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "FATHOM_ARTIFACTS": str(folder / "artifacts"),
    }
    command = server_command(port)
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _until(f"http://127.0.0.1:{port}/api/health", process)
        yield env
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def _server(env: dict[str, str]) -> Iterator[tuple[str, int, float]]:
    """A Fathom server: its address, its process id, and in how many seconds it was there."""
    port, began = free_port(), time.monotonic()
    command = [sys.executable, "-m", "fathom", "serve", "--port", str(port), "--pool", POOL]
    process = subprocess.Popen(command, env=env, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        _until(f"http://127.0.0.1:{port}/api/v1/health", process)
        yield f"http://127.0.0.1:{port}", process.pid, time.monotonic() - began
    finally:
        process.terminate()
        process.wait(30)


def _until(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        assert process.poll() is None, "it has ended"
        try:
            # The port of `fathom serve` takes connections before anything answers: they are waited for.
            if httpx.get(url, timeout=240).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.02)
    raise TimeoutError(url)


if __name__ == "__main__":
    main()
