"""Many questions on many workers: `python -m benchmarks.scale --questions 200 --workers 4 --kill`.

Runs `fathom batch` over a cluster on this machine (see `benchmarks.cluster`), with a scripted model and search of known
speed, and counts endings, repeated calls, processor time and memory. With `--kill`, a worker, a server and Redis are
killed on the way and started again. `--sqlite` has one server on SQLite instead, `--process-workers` Prefect's workers.

    lost            questions without an ending
    repeated        calls that had finished, as the providers saw it, and were made again
    answers_503     of the balancer and the servers behind it; `locked`: SQLite was, which its server also answers so
    client, server  processor seconds a question: workers and batch; Prefect's servers and services with the database
    extractive      `--extractive`: questions to the built-in documents, without a model
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.cluster import Cluster
from benchmarks.pipeline import ROOT

_TOPICS = ("tides", "glaciers", "volcanoes", "comets", "rivers", "deserts", "reefs", "storms", "caves", "moons")
_SUBJECTS = (
    "Python",
    "attribute lookup",
    "descriptors",
    "metaclasses",
    "exceptions",
    "generators",
    "scopes",
    "modules",
)
_SYLLABLES = ("ba", "do", "fe", "gi", "ku", "la", "mo", "ne", "pi", "ru")
LEAD_SECONDS = 1.0
"""A call that the provider answered so short before a kill may not have been stored: it was in flight."""


@dataclass
class Outcome:
    """One measured batch; seconds are of wall time unless they are processor seconds a question."""

    questions: int
    workers: int
    limit: int
    endings: dict[str, int]
    lost: int
    calls: int
    repeated: int
    repeated_in_flight: int
    wall: float
    client_cpu: float
    batch_cpu: float
    server_cpu: float
    database_cpu: float
    peak_worker_mb: float
    answers_503: int
    locked: int


def questions_of(number: int, *, extractive: bool) -> list[str]:
    """Return questions that differ from each other, so that no two ask a provider for the same."""
    if extractive:
        return [f"How do {_SUBJECTS[n % len(_SUBJECTS)]} work in Python, case {n}?" for n in range(number)]
    return [f"What is known about the {_TOPICS[n % len(_TOPICS)]} of planet {_name(n)}?" for n in range(number)]


def _name(number: int) -> str:
    """Return a name that no other number has."""
    return "".join(_SYLLABLES[number // len(_SYLLABLES) ** place % len(_SYLLABLES)] for place in range(3)).title()


def measure(cluster: Cluster, options: argparse.Namespace) -> Outcome:
    """Run one batch on the cluster."""
    file = cluster.home / "questions.txt"
    file.write_text("\n".join(questions_of(options.questions, extractive=options.extractive)))
    for number in range(1, options.workers + 1):
        cluster.start_fathom(f"worker-{number}", "worker", "--limit", str(options.limit), "--name", f"worker-{number}")
    time.sleep(12)  # what their start takes is no part of a question
    names = [("worker",), ("server", "services"), ("postgres", "redis", "balancer")]
    before = [cluster.cpu(*group) for group in names]
    command = [sys.executable, "-m", "fathom", "batch", str(file), "--json", "--profile", options.profile]
    command += ["--at-once", str(options.at_once or options.workers * options.limit), "--set", "fresh=true"]
    command += ["--model", "extractive" if options.extractive else "openai/stub"]
    kills: list[float] = []
    began = time.monotonic()
    with (cluster.home / "batch.log").open("wb") as log:
        process = subprocess.Popen(command, env=cluster.env(), cwd=ROOT, stdout=subprocess.PIPE, stderr=log)
        done = threading.Event()
        watch = threading.Thread(target=_look, args=(cluster, done))
        watch.start()
        if options.kill:
            threading.Thread(target=_kill, args=(cluster, kills, options.kill_after, done), daemon=True).start()
        printed = process.communicate(timeout=options.seconds)[0]
        done.set()
        watch.join()
    wall = time.monotonic() - began
    result = json.loads(printed)
    used = [cluster.cpu(*group) - start for group, start in zip(names, before, strict=True)]
    calls, repeated, in_flight = _repeated(cluster.stub_log, kills)
    endings = {name: count for name, count in result["ended"].items() if count}
    unended = sum(endings.get(name, 0) for name in ("waiting", "running"))
    balancer = cluster.home / "balancer.log"
    locked = sum(path.read_bytes().count(b"database is locked") for path in cluster.home.glob("server-*.log"))
    return Outcome(
        questions=options.questions,
        workers=options.workers,
        limit=options.limit,
        endings=endings,
        lost=options.questions - sum(endings.values()) + unended,
        calls=calls,
        repeated=repeated,
        repeated_in_flight=in_flight,
        wall=round(wall, 1),
        client_cpu=round(used[0] / options.questions, 2),
        batch_cpu=round(_children_cpu() / options.questions, 2),
        server_cpu=round(used[1] / options.questions, 2),
        database_cpu=round(used[2] / options.questions, 2),
        peak_worker_mb=round(max(s.peak_mb for n, s in cluster.services.items() if n.startswith("worker")), 0),
        answers_503=balancer.read_text().count(" 503 ") if balancer.exists() else 0,
        locked=locked,
    )


def _children_cpu() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _look(cluster: Cluster, done: threading.Event) -> None:
    while not done.wait(1):
        for service in list(cluster.services.values()):
            service.look()


def _kill(cluster: Cluster, kills: list[float], after: float, done: threading.Event) -> None:
    """Kill a worker, a server and Redis one after another, and start each again some seconds later."""
    for name in ("worker-1", "server-1", "redis"):
        if done.wait(after):
            return
        service = cluster.services[name]
        kills.append(time.monotonic())
        service.kill()
        if done.wait(5):
            return
        service.start()


def _repeated(log: Path, kills: list[float]) -> tuple[int, int, int]:
    """Return the calls, those made again after they had finished, and those that a kill may have cut off."""
    if not log.exists():
        return 0, 0, 0
    ended: dict[str, float] = {}
    calls = repeated = in_flight = 0
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["kind"] in ("models", "show"):  # asked once by each process
            continue
        key = f"{event['kind']} {event['fingerprint']}"
        if event["event"] == "end":
            ended.setdefault(key, event["time"])
            continue
        calls += 1
        if key in ended:
            cut = any(0 <= kill - ended[key] < LEAD_SECONDS for kill in kills)
            in_flight, repeated = in_flight + cut, repeated + (not cut)
    return calls, repeated, in_flight


def main() -> None:
    """Measure one batch and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=int, default=8, help="runs at once in a worker")
    parser.add_argument("--at-once", type=int, default=0, help="questions at once; by default what the workers hold")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--llm-delay", type=float, default=0.5)
    parser.add_argument("--extractive", action="store_true")
    parser.add_argument("--sqlite", action="store_true")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--kill-after", type=float, default=20, help="seconds between kills")
    parser.add_argument("--seconds", type=float, default=3600, help="after which it is given up")
    parser.add_argument("--port", type=int, default=24_300)
    parser.add_argument("--keep", type=Path, help="folder for logs and the store, kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fathom-scale-") as folder:
        home = options.keep or Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        stub = ["--llm-delay", str(options.llm_delay), "--search-delay", "0.3"]
        cluster = Cluster(home, options.port, servers=options.servers, postgres=not options.sqlite, stub=stub)
        try:
            outcome = measure(cluster, options)
        finally:
            cluster.stop()
    for name, value in asdict(outcome).items():
        print(f"{name:20}{', '.join(f'{n} {k}' for k, n in value.items()) if isinstance(value, dict) else value}")
    print(json.dumps(asdict(outcome)))


if __name__ == "__main__":
    main()
