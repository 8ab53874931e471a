"""An open-loop load on one server: `python -m benchmarks.load --rate 0.5 --seconds 60 --listeners 50`.

Starts Prefect, scripted providers and `fathom serve` on this machine (see `benchmarks.cluster`), asks questions at
random moments that do not depend on the answers (Poisson arrivals), and follows each run. Further listeners follow the
same runs. Nothing that is refused is asked again. Listeners and servers share the machine: its load is in the numbers.

    good            questions whose first note came within 5 s, without 10 s in which no event came, and that ended with
                    a report; goodput: so many a second
    refused         answers 429 and 503 to questions, and whether they came with `Retry-After`; unanswered: none came
    errors          other answers to questions; those to listeners, and streams that broke, by their cause
    delay           from the time that an event says to its arrival, of all streams that were open at the time
    first note, gap seconds from when a question was due; the longest time without an event, until the run ended
    processor       seconds a question: the server alone, its workers, Prefect, and this program
    peak            memory of the server alone, in MB
    locked          lines of Prefect's log with `database is locked`; exceptions: in the server's log
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import signal
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from benchmarks.cluster import Cluster, Service, answers, wait_until
from benchmarks.pipeline import DELAYS
from benchmarks.scale import questions_of
from benchmarks.timed import free_port
from fathom.interfaces.connections import raise_file_limit
from fathom.models import RunState

FIRST_NOTE_SECONDS, GAP_SECONDS = 5.0, 10.0
PATIENCE = 60.0  # seconds for an answer
AGAIN_SECONDS = 2.0  # before a stream that was cut off is opened again, as the server asks
ARRIVE_SECONDS = 10.0  # in which the listeners come
_SPARE_FILES = 100
_SERVER = "fathom"


@dataclass
class Asked:
    """One question as the person saw it who asked. Seconds are counted from when it was due."""

    status: int = 0  # of the answer; 0: none
    answer: float = 0.0
    first_note: float = float("inf")
    gap: float = 0.0
    ended: str = ""

    @property
    def good(self) -> bool:
        """Whether the person had no reason to give up."""
        return self.ended == RunState.complete and self.first_note <= FIRST_NOTE_SECONDS and self.gap <= GAP_SECONDS


@dataclass
class Load:
    """What was seen so far."""

    address: httpx.URL
    asked: list[Asked] = field(default_factory=list)
    running: set[str] = field(default_factory=set)
    delays: list[float] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    streams: int = 0
    most_streams: int = 0


async def apply(load: Load, options: argparse.Namespace) -> None:
    """Ask the questions, and wait for the runs for some time."""
    moments = [0.0, *arrivals(options.rate, options.seconds, options.seed)]
    chance = random.Random(options.seed)
    listening = [asyncio.create_task(_listen(load, chance)) for _ in range(options.listeners)]
    began = time.monotonic()
    async with httpx.AsyncClient(base_url=load.address, timeout=PATIENCE, limits=httpx.Limits()) as client:
        asking = []
        for moment, question in zip(moments, questions_of(len(moments), extractive=options.extractive), strict=True):
            await asyncio.sleep(began + moment - time.monotonic())
            asking.append(asyncio.create_task(_ask(load, client, question, began + moment)))
        await asyncio.sleep(began + options.seconds - time.monotonic())
        await asyncio.wait(asking, timeout=options.drain)
        for task in (*asking, *listening):
            task.cancel()
        for ended in await asyncio.gather(*asking, *listening, return_exceptions=True):
            if isinstance(ended, Exception):  # a mistake of this program
                raise ended


def arrivals(rate: float, seconds: float, seed: int) -> Iterator[float]:
    """Yield when questions are due: seconds from the start, a Poisson process of so many a second."""
    chance, moment = random.Random(seed), 0.0
    while (moment := moment + chance.expovariate(rate)) < seconds:
        yield moment


async def _ask(load: Load, client: httpx.AsyncClient, question: str, due: float) -> None:
    asked = Asked()
    load.asked.append(asked)
    body = {"question": question, "settings": {"profile": "quick", "fresh": True}}
    try:
        answer = await client.post("/api/v1/runs", json=body)
    except httpx.TransportError as error:
        load.errors[f"ask: {type(error).__name__}"] += 1
        return
    finally:
        asked.answer = time.monotonic() - due
    asked.status = answer.status_code
    if asked.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        load.refusals[f"{asked.status} {'with' if 'retry-after' in answer.headers else 'without'} Retry-After"] += 1
    elif asked.status != HTTPStatus.ACCEPTED:
        load.errors[f"ask: {asked.status} {answer.text[:200]}"] += 1
    else:
        await _follow(load, asked, answer.json()["id"], due)


async def _follow(load: Load, asked: Asked, run_id: str, due: float) -> None:
    last = due
    load.running.add(run_id)
    try:
        async for event in _events(load, run_id):
            now = time.monotonic()
            asked.gap, last = max(asked.gap, now - last), now
            if event["type"] == "note_created":
                asked.first_note = min(asked.first_note, now - due)
            if "ended" in event["data"]:
                asked.ended = event["data"]["state"]
    finally:
        asked.gap = max(asked.gap, time.monotonic() - last)
        load.running.discard(run_id)


async def _listen(load: Load, chance: random.Random) -> None:
    """Follow one run after another. Not all come at the same moment."""
    await asyncio.sleep(chance.uniform(0, ARRIVE_SECONDS))
    while True:
        if load.running:
            async for _ in _events(load, chance.choice(sorted(load.running))):
                pass
        await asyncio.sleep(0.1)


async def _events(load: Load, run_id: str) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the events of a run to its end, over as many connections as that takes."""
    after, ended = 0, False
    while not ended:
        try:
            async for event in _stream(load, run_id, after):
                after, ended = event["id"] or after, "ended" in event["data"]
                yield event
            problem = "" if ended else "cut off"
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            problem = str(error) or type(error).__name__
        if problem:
            load.errors[f"stream: {problem}"] += 1
            await asyncio.sleep(AGAIN_SECONDS)


async def _stream(load: Load, run_id: str, after: int) -> AsyncGenerator[dict[str, Any], None]:
    """Yield what comes over one connection.

    Raises:
        ConnectionError: the answer is no stream.
    """
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(load.address.host, load.address.port, limit=2**22)
    load.streams += 1
    load.most_streams = max(load.most_streams, load.streams)
    try:
        # HTTP/1.0 has no chunks: a line of the stream is a line of the connection.
        line = f"GET /api/v1/runs/{run_id}/events?after={after} HTTP/1.0"
        writer.write(f"{line}\r\nHost: {load.address.netloc.decode()}\r\n\r\n".encode())
        async with asyncio.timeout(PATIENCE):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        if " 200 " not in head[0]:
            raise ConnectionError(", ".join([head[0], *(line for line in head if line.startswith("retry-after"))]))
        opened = time.time()
        while data := await _line(reader):
            if data.startswith(b"data: "):
                event = json.loads(data[6:])
                at = datetime.fromisoformat(event["at"]).timestamp()
                if event["id"] and at > opened:
                    load.delays.append(time.time() - at)
                yield event
    finally:
        load.streams -= 1
        writer.close()


async def _line(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE):  # a comment comes every 15 s
        return await reader.readline()


def measure(cluster: Cluster, options: argparse.Namespace) -> dict[str, object]:
    """Start the server, load it, and return what was seen."""
    server = _start(cluster, options)
    load = Load(httpx.URL(f"http://127.0.0.1:{options.port}"))
    before = _processor(cluster, server)
    asyncio.run(apply(load, options))
    number, accepted = len(load.asked), [asked for asked in load.asked if asked.status == HTTPStatus.ACCEPTED]
    used = {name: (end - before[name]) / max(1, number) for name, end in _processor(cluster, server).items()}
    server.look()
    good = sum(asked.good for asked in load.asked)
    return {
        "questions": number,
        "good": good,
        "goodput": f"{good / options.seconds:.3f} of {number / options.seconds:.3f} a second",
        "refused": _counts(load.refusals),
        "unanswered": sum(not asked.status for asked in load.asked),
        "endings": _counts(Counter(asked.ended or "none yet" for asked in accepted)),
        "errors": _counts(load.errors),
        "answer": _spread([asked.answer for asked in load.asked]),
        "first note": _spread([asked.first_note for asked in accepted]),
        "gap": _spread([asked.gap for asked in accepted]),
        "delay": _spread(load.delays),
        "streams at once": load.most_streams,
        "processor": ", ".join(f"{name} {seconds:.2f}" for name, seconds in used.items()),
        "peak": f"{server.peak_mb:.0f}",
        "locked": _log_of(cluster, "server-").count("database is locked"),
        "exceptions": _log_of(cluster, _SERVER).count("Traceback (most recent call last)"),
    }


def _processor(cluster: Cluster, server: Service) -> dict[str, float]:
    """Return the processor seconds so far, by what has used them."""
    alone, own = server.cpu(children=False), resource.getrusage(resource.RUSAGE_SELF)
    return {
        "server": alone,
        "workers": server.cpu() - alone,
        "Prefect": cluster.cpu("server-"),
        "load": own.ru_utime + own.ru_stime,
    }


def _start(cluster: Cluster, options: argparse.Namespace) -> Service:
    model = {"FATHOM_MODEL": "extractive" if options.extractive else "openai/stub"}
    command = ["serve", "--port", str(options.port), "--at-once", str(options.at_once)]
    server = cluster.start_fathom(_SERVER, *command, **model)
    wait_until(lambda: not server.running or answers(f"http://127.0.0.1:{options.port}/api/v1/ready"), "fathom serve")
    if not server.running:
        raise SystemExit(f"fathom serve has ended: {_log_of(cluster, _SERVER)[-1_000:]}")
    return server


def _log_of(cluster: Cluster, beginning: str) -> str:
    return "".join(path.read_text(errors="replace") for path in cluster.home.glob(f"{beginning}*log"))


def _counts(counted: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counted.most_common()) or "none"


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "none"
    p50, p99 = (sorted(seconds)[int(share * len(seconds))] for share in (0.5, 0.99))
    return f"p50 {p50:.2f} s, p99 {p99:.2f} s of {len(seconds)}"


def main() -> None:
    """Apply one load and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=0.5, help="questions a second, on average (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="in which questions are asked (%(default)s)")
    parser.add_argument("--drain", type=float, default=60, help="seconds that the last runs have to end (%(default)s)")
    parser.add_argument("--listeners", type=int, default=50, help="streams beside those of who asked")
    parser.add_argument("--at-once", type=int, default=2, help="runs at once, each in a process (%(default)s)")
    parser.add_argument("--extractive", action="store_true", help="questions to built-in documents, without a model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for logs and the store, kept")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, as Ctrl-C does
    if options.listeners + _SPARE_FILES > (files := raise_file_limit()):
        raise SystemExit(f"{options.listeners} listeners need more open files than {files}: raise `ulimit -n`")
    options.port = free_port()
    with tempfile.TemporaryDirectory(prefix="fathom-load-") as folder:
        home = options.keep or Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        cluster = Cluster(home, free_port(), postgres=False, s3=False, stub=DELAYS)
        try:
            seen = measure(cluster, options)
        finally:
            cluster.stop()
    print(f"load of the machine: {', '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} cores")
    for name, value in seen.items():
        print(f"{name:17}{value}")


if __name__ == "__main__":
    main()
