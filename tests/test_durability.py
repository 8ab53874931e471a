"""A run is killed, at random and at chosen moments, and resumed each time: no call that had finished is made again."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fathom.flows.execution.deploying import POOL, ensure_pool
from fathom.storage.journal import changes_in
from simulator.history import check
from tests.boundaries import BOUNDARIES, DIES_AT
from tests.conftest import ROOT, Forked, PrefectServer, base_env
from tests.forking import Fork
from tests.inprocess import LINKS_CHECKED, QUERY, kept
from tests.processes import Kills, asking, finish, flow_runs, left_behind
from tests.stubs import Stubs

KILLS = int(os.environ.get("KILLS", "6"))  # 30 in `make test-long`
SEED = int(os.environ.get("KILL_SEED", "20261122"))  # another one tries other moments


@pytest.fixture
def env(providers: Stubs, prefect_server: PrefectServer, home: Path) -> dict[str, str]:
    """A process's environment: the session's server, the providers of this one, an empty home."""
    providers.settings.llm_delay = providers.settings.search_delay = 0.1
    providers.settings.steps, providers.settings.breadth = 2, 1
    return {**base_env(), "HOME": str(home), **prefect_server.env, **providers.env}


class Attempts:
    """What the stub and the store saw of each attempt at one run.

    A call has finished once its result is stored: of the answers that an attempt got, those without a result were lost
    with it, and no other may be asked for again.
    """

    def __init__(self, stubs: Stubs, root: Path) -> None:
        self._stubs = stubs
        self._root = root
        self._answers: list[tuple[int, set[str], int]] = []  # requests until its end, what was answered, results stored
        self._kills: list[tuple[int, float]] = []  # requests before the attempt, and when it was killed
        self._seen = self.results()

    def results(self) -> int:
        """Return how many calls have a stored result, in its file or still in the journal alone."""
        journals = [path.read_bytes() for path in self._root.glob(".results/*/journal/*")]
        stored = {change.path for data in journals for change in changes_in(data)}
        stored |= {str(path.relative_to(self._root)) for path in self._root.glob(".results/*/*-*")}
        return sum(Path(path).name.startswith(("model_call-", "tool-")) for path in stored)

    def ended(self, first: int, killed: float) -> None:
        """Take down the attempt that was killed, and when; `first`: how many requests there were before it."""
        self._kills.append((first, killed))
        answered = {record.fingerprint for record in self._stubs.requests[first:] if record.ended is not None}
        stored = self.results()
        self._answers.append((len(self._stubs.requests), answered, stored - self._seen))
        self._seen = stored

    def repeated(self) -> list[int]:
        """Return for each attempt how many of its finished calls were asked for again later."""
        found = []
        for requests, answered, stored in self._answers:
            again = {record.fingerprint for record in self._stubs.requests[requests:]} & answered
            found.append(len(again) - (len(answered) - stored))
        return found

    def ages(self) -> list[int]:
        """Return how many milliseconds before its kill each answer was sent that was asked for again."""
        found = []
        for (first, killed), (requests, _answered, _stored) in zip(self._kills, self._answers, strict=True):
            again = {record.fingerprint for record in self._stubs.requests[requests:]}
            before = [record for record in self._stubs.requests[first:requests] if record.fingerprint in again]
            found += [round(1000 * (killed - record.ended)) for record in before if record.ended]
        return sorted(found)

    def lost(self) -> list[int]:
        """Return for each attempt how many answers came too late to be stored."""
        return [len(answered) - stored for _requests, answered, stored in self._answers]


def test_a_run_killed_at_random_points_repeats_nothing(
    stubs: Stubs, env: dict[str, str], forked: Forked, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    stubs.settings.steps, stubs.settings.breadth = 3, 2
    options = ["--model", "openai/stub", "--profile", "deep", "--fresh", "--json", "--quiet"]
    undisturbed = asyncio.run(kept(tmp_path / "undisturbed", profile="deep", fresh=True, report=LINKS_CHECKED))
    total = len(stubs.requests)
    assert (
        len({record.fingerprint for record in stubs.requests})
        == total
        == Attempts(stubs, tmp_path / "undisturbed").results()
    )
    stubs.requests.clear()

    dice = random.Random(SEED)
    moments = sorted(dice.randrange(total - 5) for _ in range(KILLS))  # answered requests at each kill
    root = tmp_path / "killed"
    root.mkdir()
    attempts = Attempts(stubs, root)
    began = time.monotonic()
    command = ["research", QUERY, *options, "--artifacts", str(root)]
    for number, moment in enumerate(moments):
        first, reached = len(stubs.requests), len(stubs.answered()) >= moment
        stubs.settings.answers = moment + 4  # it must not end before it is killed
        stubs.settings.llm_delay = stubs.settings.search_delay = 30 if reached else 0.1
        process = forked(env | {"FATHOM_CACHE": str(tmp_path / f"cache-{number}")}, *command)
        if not number:  # before that there is nothing to resume
            stubs.wait_for(1, "planner", ended=False)
        wait_for_answers(stubs, moment, process)
        time.sleep(dice.uniform(0, 1.5 if reached else 0.05))  # while it starts and reads what there is, or works
        killed = time.monotonic()
        process.kill()
        assert process.wait() == -signal.SIGKILL
        attempts.ended(first, killed)
        run_id = flow_runs(prefect_server.api_url)[0]["id"]
        command = ["resume", run_id, "--json", "--quiet"]
    stubs.settings.llm_delay = stubs.settings.search_delay = 0
    stubs.settings.answers = None
    result = finish(forked(env | {"FATHOM_CACHE": str(tmp_path / "cache")}, *command))
    print(
        f"seed {SEED}: {KILLS} kills in {time.monotonic() - began:.0f} s, at {moments} of {total} calls; "
        f"{len(stubs.requests) - total} calls were in flight, {sum(attempts.lost())} just answered; "
        f"answers that were asked for again, in ms before the kill: {attempts.ages()}"
    )
    assert (result["run_id"], result["status"]) == (run_id, "complete")
    assert attempts.repeated() == [0] * KILLS
    assert sum(attempts.lost()) < 4 * KILLS, attempts.lost()  # ten times as many where results wait for their step
    assert left_behind(result) == left_behind(undisturbed.model_dump())
    assert len(list((root / "research_artifacts").iterdir())) == 1
    assert_history(stubs, Path(result["artifacts"]))


def test_a_run_killed_at_boundaries_of_its_journal_repeats_nothing(
    stubs: Stubs, env: dict[str, str], forked: Forked, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    stubs.settings.steps = stubs.settings.follow_ups = 1
    options = ["--model", "openai/stub", "--fresh", "--json", "--quiet"]
    undisturbed = asyncio.run(kept(tmp_path / "undisturbed", fresh=True, report=LINKS_CHECKED))
    stubs.requests.clear()
    root = tmp_path / "killed"
    root.mkdir()
    attempts = Attempts(stubs, root)
    every = -(-len(BOUNDARIES) // KILLS)
    boundaries = [*BOUNDARIES][every // 2 :: every]
    command = ["research", QUERY, *options, "--artifacts", str(root)]
    for name in boundaries:
        first = len(stubs.requests)
        process = forked(env | {DIES_AT: name}, *command)
        assert process.wait(120) == -signal.SIGKILL, (name, process.said())
        attempts.ended(first, time.monotonic())
        run_id = flow_runs(prefect_server.api_url)[0]["id"]
        command = ["resume", run_id, "--json", "--quiet"]
    result = finish(forked(env, *command))
    assert (result["run_id"], result["status"]) == (run_id, "complete")
    assert attempts.repeated() == [0] * len(boundaries)
    for name, lost in zip(boundaries, attempts.lost(), strict=True):
        assert BOUNDARIES[name].lost in (None, lost), name
    assert left_behind(result) == left_behind(undisturbed.model_dump())
    assert_history(stubs, Path(result["artifacts"]))


def assert_history(stubs: Stubs, folder: Path) -> None:
    """Assert what the provider's log says of a run; and that a line more would be noticed."""
    records = [record for record in stubs.requests if record.kind == "llm"]
    events = [record.event("start") for record in records]
    events += [record.event("end") for record in records if record.ended is not None]
    lines = [json.dumps(event) for event in sorted(events, key=lambda event: event["at"])]
    found = check(lines, folder)
    assert (found.problems, found.requests) == ([], len(records))
    again = {**max(events, key=lambda event: event["at"]), "event": "start", "n": 10**6, "at": time.time()}
    assert "sent again" in check([*lines, json.dumps(again)], folder).problems[0]


def test_a_run_killed_while_its_claims_are_judged_asks_no_batch_twice(
    stubs: Stubs, env: dict[str, str], forked: Forked, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    stubs.settings.section = " ".join(f"The lake number {n} was studied in other words [ID]." for n in range(50))
    stubs.settings.faults = {"judge": ["ok", "silent*"]}
    root = tmp_path / "judged"
    root.mkdir()
    attempts = Attempts(stubs, root)
    options = ["--model", "openai/stub", "--profile", "quick", "--set", "report.judge=always"]
    process = forked(env, "research", QUERY, *options, "--json", "--quiet", "--artifacts", str(root))
    stubs.wait_for(3, "judge", ended=False)
    (judged,) = stubs.wait_for(1, "judge")
    while not any(
        judged.fingerprint and "opinions" in path.read_text() for path in root.glob(".results/*/model_call-*")
    ):
        time.sleep(0.05)  # until its result is stored
    killed = time.monotonic()
    process.kill()
    assert process.wait() == -signal.SIGKILL
    attempts.ended(0, killed)
    stubs.settings.faults = {}
    run_id = flow_runs(prefect_server.api_url)[0]["id"]
    result = finish(forked(env, "resume", run_id, "--json", "--quiet"))
    assert result["status"] == "complete"
    assert attempts.repeated() == [0]
    assert len([r for r in stubs.calls("judge") if r.fingerprint == judged.fingerprint]) == 1


def wait_for_answers(stubs: Stubs, count: int, process: Fork) -> None:
    deadline = time.monotonic() + 120
    while len(stubs.answered()) < count:
        assert time.monotonic() < deadline, process.said()
        time.sleep(0.002)


@pytest.fixture
def worker(env: dict[str, str], tmp_path: Path) -> Iterator[None]:
    """Deploy everything to a process work pool and run a worker on it."""
    prefect = [sys.executable, "-m", "prefect", "--no-prompt"]
    asyncio.run(ensure_pool(POOL))
    done = subprocess.run([*prefect, "deploy", "--all"], env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    polling = {**env, "PREFECT_WORKER_QUERY_SECONDS": "1"}
    with (tmp_path / "worker.log").open("wb") as log:
        command = [*prefect, "worker", "start", "--pool", POOL]
        process = subprocess.Popen(command, env=polling, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
    yield
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.usefixtures("worker")
def test_a_run_of_prefect_s_worker_is_killed_and_repeats_nothing(
    stubs: Stubs, env: dict[str, str], forked: Forked, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    stubs.settings.llm_delay = 0.2
    settings = {"model": "openai/stub", "profile": "quick", "fresh": True, "artifacts": str(tmp_path)}
    with asking(prefect_server.api_url) as client:
        deployment = client.get("/deployments/name/deep-research/on-demand").json()["id"]
        wanted = {"parameters": {"query": QUERY, "settings": settings}, "state": {"type": "SCHEDULED"}}
        run_id = client.post(f"/deployments/{deployment}/create_flow_run", json=wanted).json()["id"]

    def kill() -> None:
        with asking(prefect_server.api_url) as client:
            process = client.get(f"/flow_runs/{run_id}").json()["infrastructure_pid"]
        os.kill(int(process.rpartition(":")[2]), signal.SIGKILL)

    kills = Kills(stubs)
    kills.after(2, kill)
    result = finish(forked(env, "resume", run_id, "--json", "--quiet"))
    assert (result["run_id"], result["status"]) == (run_id, "complete")
    assert kills.repeated() == []
