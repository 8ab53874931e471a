"""A large store listed and searched: `python -m benchmarks.listing --runs 10000 --on local s3`.

Makes a store of that many finished runs, on this disk and in an S3 server (moto, in a process of its own, which counts
requests), and starts the commands as a user does, without a Prefect server. `--checkout PATH` runs another checkout's
commands on the same store.

    empty     `fathom runs` over a store without runs: what starting the command takes
    no index  `fathom runs` for the first time, or after the index was lost
    runs      `fathom runs` with the index
    show      `fathom show ID` of the run in the middle
    new       `fathom runs` after a run has begun and one was removed by another program
    unknown   `fathom show` of an id that no run has

Seconds are the time of the whole process, `cpu` its processor time, which other programs disturb less. A request is
counted at the server; on a disk there are none.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from benchmarks.timed import free_port
from fathom.flows.runs.index import INDEX, RunIndex
from fathom.models import Ending, Metrics, Plan, PlanStep, RunManifest, RunResult
from fathom.models.run import LAYOUT
from fathom.storage.lease import Lease
from fathom.storage.names import slug
from fathom.storage.store import ArtifactStore, RunFolder, json_bytes

ROOT = Path(__file__).parent.parent
BUCKET = "fathom-listing"
_COUNT = "/_requests"
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Measure and print a table for each store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--on", nargs="+", choices=["local", "s3"], default=["local", "s3"])
    parser.add_argument("--checkout", type=Path, default=ROOT, help="whose commands are measured")
    parser.add_argument("--times", type=int, default=3, help="measurements; the median is printed (default: 3)")
    parser.add_argument("--seed", action="store_true", help="copy the index there instead of measuring its making")
    parser.add_argument("--serve-s3", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve_s3:
        _serve(options.serve_s3, options.runs)
        return
    print(f"load: {', '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as home:
        for kind in options.on:
            with _local(options.runs) if kind == "local" else _s3(options.runs) as (root, env):
                print(f"\n{options.runs:,} runs, {kind}, commands of {options.checkout}\n")
                print("| command | seconds | cpu | requests |")
                print("|---|--:|--:|--:|")
                _measure(root, {**_environment(Path(home)), **env}, options)


def _measure(root: str, env: dict[str, str], options: argparse.Namespace) -> None:
    middle, last = run_id(options.runs // 200 * 100), run_id(options.runs - 1)

    def told(name: str, store: str, *arguments: str, times: int = 1, code: int = 0) -> str:
        seconds, used, requests, printed = [], [], 0, ""
        for _ in range(times):
            before, began, cpu = _requests(env), time.monotonic(), _cpu()
            command = [sys.executable, "-m", "fathom", *arguments, "--artifacts", store]
            done = subprocess.run(command, cwd=options.checkout, env=env, capture_output=True, text=True, check=False)
            seconds.append(time.monotonic() - began)
            used.append(_cpu() - cpu)
            requests, printed = _requests(env) - before, done.stdout
            if done.returncode != code:
                raise SystemExit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
        print(f"| {name} | {median(seconds):.2f} | {median(used):.2f} | {requests} |", flush=True)
        return printed

    told("empty", f"{root}-empty", "runs", times=options.times)
    if options.seed:
        _seed(root, options.runs, env)
    else:
        told("no index", root, "runs")
    rows = json.loads(told("runs", root, "runs", "--json", times=options.times))
    assert [row["run_id"] for row in rows[:1]] == [last], "the newest run is the first"
    told("show", root, "show", middle, times=options.times)
    asyncio.run(_change(root, options.runs, env))
    rows = json.loads(told("new", root, "runs", "--json"))
    assert [row["run_id"] for row in rows[:2]] == [run_id(options.runs), run_id(options.runs - 2)], rows[:2]
    told("unknown", root, "show", "ffffffff", code=2)


def _seed(root: str, runs: int, env: dict[str, str]) -> None:
    """Give a store the index that another one with the same runs has."""
    os.environ.update({name: value for name, value in env.items() if name.startswith("AWS_")})

    async def copy(own: ArtifactStore) -> None:
        assert len(await RunIndex(own).read()) == runs
        await ArtifactStore(root).write(INDEX, await own.read(INDEX))

    with _local(runs) as (folder, _):
        asyncio.run(copy(ArtifactStore(folder)))


async def _change(root: str, runs: int, env: dict[str, str]) -> None:
    os.environ.update({name: value for name, value in env.items() if name.startswith("AWS_")})
    store = ArtifactStore(root)
    for path, data in files_of(runs):
        if path.endswith("run.json"):
            title = str(json.loads(data)["plan_title"])
            await RunFolder.claim(store, title, run_id(runs), run_id(runs), json.loads(data))
        else:
            await store.write(path, data)
    for gone in (folder_of(runs - 1), f".results/{run_id(runs - 1)}"):
        await store.remove_all(list(await store.sizes(gone)))  # without a word, as another program does


def run_id(number: int) -> str:
    """Return the id of a run."""
    return f"{number * 2654435761 % 2**32:08x}-0000-4000-8000-{number:012}"


def folder_of(number: int) -> str:
    """Return the folder of a run."""
    return f"research_artifacts/{slug(_title(number))}"


def files_of(number: int) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a finished run that a list and a search read, by their paths."""
    own, folder = run_id(number), folder_of(number)
    metrics: dict[str, Any] = {name: 1 for name, field in Metrics.model_fields.items() if field.is_required()}
    manifest = RunManifest(
        layout=LAYOUT,
        run_id=own,
        run_key=own,
        query=f"What is known of {_title(number).lower()}, and since when?",
        plan_title=_title(number),
        started=(_FIRST + timedelta(minutes=number)).isoformat(timespec="seconds"),
        settings={"profile": "standard", "budget": {"max_usd": 1.0}},
        models={"planner": "extractive"},
        prompts={},
        versions={},
    )
    result = RunResult(
        run_id=own,
        status=Ending.complete,
        plan_title=manifest.plan_title,
        artifacts=folder,
        report=f"{folder}/report.md",
        sources=[],
        metrics=Metrics.model_validate(metrics),
    )
    step = PlanStep(step_id=1, title="What is known", description="Find it.")
    yield f"{folder}/run.json", json_bytes(manifest)
    yield f"{folder}/result.json", json_bytes(result)
    if number % 100 == 0:  # the others are only listed
        yield f"{folder}/plan.json", json_bytes(Plan(plan_title=manifest.plan_title, steps=[step]))
        yield f"{folder}/report.md", b"# " + manifest.query.encode() + b"\n\nNothing yet.\n"
    lease = Lease(
        run_id=own,
        run_key=own,
        parameters={"query": manifest.query},
        host="nowhere",
        pid=1,
        token=own,
        started=manifest.started,
        renewed=manifest.started,
        released=True,
    )
    yield f".results/{own}/lease/0001.json", json_bytes(lease)


def fill(root: Path, runs: int) -> None:
    """Write the files of finished runs into a folder, which becomes a store."""
    for number in range(runs):
        for path, data in files_of(number):
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def _title(number: int) -> str:
    return f"Subject {number:06} of the collection"


@contextmanager
def _local(runs: int) -> Iterator[tuple[str, dict[str, str]]]:
    folder = Path(tempfile.mkdtemp())
    try:
        fill(folder / "store", runs)
        yield str(folder / "store"), {}
    finally:
        shutil.rmtree(folder)


@contextmanager
def _s3(runs: int) -> Iterator[tuple[str, dict[str, str]]]:
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.listing", "--serve-s3", str(port), "--runs", str(runs)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}"
    env = {"AWS_ACCESS_KEY_ID": "stub", "AWS_SECRET_ACCESS_KEY": "stub", "AWS_DEFAULT_REGION": "us-east-1"}
    env["AWS_ENDPOINT_URL"] = endpoint
    try:
        for _ in range(600):
            try:
                httpx.get(f"{endpoint}{_COUNT}")
                break
            except httpx.TransportError:
                time.sleep(0.2)
        yield f"s3://{BUCKET}/store", env
    finally:
        server.terminate()
        server.wait()


def _serve(port: int, runs: int) -> None:
    """Serve S3 with such a store, which is written past the server, and count requests."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from moto.s3.models import s3_backends
    from werkzeug.serving import make_server

    backend = s3_backends["123456789012"]["aws"]
    backend.create_bucket(BUCKET, "us-east-1")
    for number in range(runs):
        for path, data in files_of(number):
            backend.put_object(BUCKET, f"store/{path}", data)
    app, counted = DomainDispatcherApplication(create_backend_app), 0

    def counting(environ: dict[str, Any], start_response: Any) -> Any:
        nonlocal counted
        if environ["PATH_INFO"] == _COUNT:
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [str(counted).encode()]
        counted += 1
        return app(environ, start_response)

    make_server("127.0.0.1", port, counting, threaded=True).serve_forever()


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _requests(env: dict[str, str]) -> int:
    endpoint = env.get("AWS_ENDPOINT_URL")
    return int(httpx.get(f"{endpoint}{_COUNT}", timeout=60).text) if endpoint else 0


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    port = free_port()  # where no Prefect server is
    return {**kept, "HOME": str(home), "PREFECT_HOME": str(home / ".prefect"), "PREFECT_SERVER_API_PORT": str(port)}


if __name__ == "__main__":
    main()
