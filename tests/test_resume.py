"""A run that was stopped, however and wherever: it says so, nobody takes it twice, and it goes on with no repeats."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.states import Running

from fathom.config.secrets import Scrubber
from fathom.config.settings import ResearchSettings
from fathom.errors import FathomError, RunBusy, RunCancelled
from fathom.flows.execution import local
from fathom.flows.execution.resuming import reschedule
from fathom.llm import prompts
from fathom.storage.lease import LEASE_SECONDS, LeaseFile, LeaseKeeper, died, note_progress, read_lease, result_key
from fathom.storage.store import ArtifactStore
from fathom.tasks.supervision import MANY, Supervision, watched
from tests.conftest import Bucket, FathomCLI, Forked, PrefectServer, base_env, is_own, quiet_port
from tests.inprocess import LINKS_CHECKED, QUERY, investigated, kept
from tests.processes import (
    AT_ONCE,
    COMMIT_SECONDS,
    Kills,
    OwnServer,
    asking,
    end_all,
    ended_process,
    finish,
    flow_runs,
    left_behind,
)
from tests.stubs import Stubs, serving

SMALL = {"model": "openai/stub", "window": 8_000}
QUICK = ["--model", "openai/stub", "--profile", "quick", "--fresh", "--quiet"]


def shrink(stubs: Stubs) -> None:
    """Make a run small: a dozen requests, and each role of a quick run."""
    stubs.settings.steps, stubs.settings.breadth, stubs.settings.results = 2, 1, 2


@pytest.fixture
def env(stubs: Stubs, prefect_server: PrefectServer, home: Path) -> Iterator[dict[str, str]]:
    """A process's environment: the session's server, the stubs, an empty home."""
    shrink(stubs)
    stubs.settings.llm_delay = stubs.settings.search_delay = 0.2
    yield {**base_env(), "HOME": str(home), **prefect_server.env, **stubs.env}
    end_all()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run stores that nobody stops, by a process with another hash seed."""
    with serving() as stubs, pytest.MonkeyPatch.context() as environment:
        shrink(stubs)
        for name, value in stubs.env.items():
            environment.setenv(name, value)
        folder = tmp_path_factory.mktemp("undisturbed")
        result = asyncio.run(kept(folder, profile="quick", fresh=True, report=LINKS_CHECKED))
        return left_behind(result.model_dump())


# -- leases -----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["local", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    root = request.getfixturevalue("moto_s3").url if request.param == "s3" else str(tmp_path)
    return ArtifactStore(root)


async def take(store: ArtifactStore) -> LeaseFile:
    return await LeaseFile.take(store, "run-1", "key", {"query": QUERY})


async def forge(store: ArtifactStore, **changes: Any) -> None:
    """Change the latest lease as if another process had written it."""
    lease = await read_lease(store, "key")
    assert lease
    names = await store.list(".results/key/lease")
    await store.write(f".results/key/lease/{names[-1]}", lease.model_copy(update=changes).model_dump_json().encode())


async def test_of_several_who_want_a_run_one_gets_it(store: ArtifactStore) -> None:
    for _ in range(3):  # a run that never began, and then one whose process is gone
        outcomes = await asyncio.gather(*(take(store) for _ in range(8)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes].count(LeaseFile) == 1
        assert [type(outcome) for outcome in outcomes].count(RunBusy) == 7
        await forge(store, pid=await asyncio.to_thread(ended_process))


async def test_a_lease_is_good_until_it_is_released_or_not_renewed(store: ArtifactStore) -> None:
    held = await take(store)
    with pytest.raises(RunBusy, match=f"process {os.getpid()} on "):
        await take(store)
    assert await held.renew()
    await held.release()
    held = await take(store)

    ago = datetime.now(UTC) - timedelta(seconds=LEASE_SECONDS + 1)
    await forge(store, host="elsewhere", renewed=(ago + timedelta(seconds=10)).isoformat())
    with pytest.raises(RunBusy, match="on elsewhere"):
        await take(store)
    await forge(store, renewed=ago.isoformat())
    await take(store)
    assert not await held.renew(), "who comes back finds out that another one took over"


async def test_attempts_are_counted_since_the_run_last_came_further(store: ArtifactStore) -> None:
    for number in range(4):
        assert await died(store, "key") == number % 3
        await LeaseFile.take(store, "run-1", "key", {}, seconds=0)
        if number == 2:
            assert await died(store, "key") == 3
            await note_progress(store, "key", "a question of a batch that has ended")
            assert await died(store, "key") == 0


async def test_a_clock_that_is_ahead_blocks_a_run_only_while_its_process_lives(store: ArtifactStore) -> None:
    def ahead(hours: int) -> dict[str, str]:
        return {"host": "elsewhere", "renewed": (datetime.now(UTC) + timedelta(hours=hours)).isoformat()}

    await LeaseFile.take(store, "run-1", "key", {}, seconds=30)
    await forge(store, **ahead(1))
    taking = asyncio.create_task(take(store))
    hours = 1
    while not taking.done():  # it lives, and renews its lease
        hours += 1
        await forge(store, **ahead(hours))
        await asyncio.wait([taking], timeout=0.2)
    with pytest.raises(RunBusy, match="on elsewhere"):
        await taking
    await forge(store, **ahead(hours + 1), seconds=0.5)
    await take(store)


async def test_a_clock_that_jumps_gives_nobody_a_run_whose_process_works(store: ArtifactStore) -> None:
    keeper = LeaseKeeper(await LeaseFile.take(store, "run-1", "key", {}, seconds=2), lambda reason: None)
    await forge(store, renewed=(datetime.now(UTC) - timedelta(hours=1)).isoformat())
    with pytest.raises(RunBusy, match=f"process {os.getpid()} on "):
        await take(store)
    await keeper.release()
    await take(store)


async def test_an_expired_lease_is_renewed_or_taken_over_but_not_both(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr("fathom.storage.lease.uptime", lambda: now)
    for contested in (False, True, True, True):
        held = await take(store)
        now += LEASE_SECONDS
        ago = datetime.now(UTC) - timedelta(seconds=LEASE_SECONDS)
        await forge(store, host="elsewhere", renewed=ago.isoformat())
        assert not held.valid
        if contested:
            renewed, taken = await asyncio.gather(held.renew(), take(store), return_exceptions=True)
            assert renewed is isinstance(taken, RunBusy), (renewed, taken)
        else:
            assert await held.renew(), "nobody took the run"
            assert held.valid
        await forge(store, released=True)


@flow
async def blocking(root: str, run_key: str) -> None:
    """Block the event loop until the lease would have expired, while another attempt is made."""
    store = ArtifactStore(root)
    async with Supervision(store, Scrubber([]), lease_seconds=4):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, tries_in_vain(store, run_key)).result()


async def tries_in_vain(store: ArtifactStore, run_key: str) -> None:
    first = await read_lease(store, run_key)
    assert first
    expires = datetime.fromisoformat(first.renewed) + timedelta(seconds=4)
    deadline = time.monotonic() + 60
    while (lease := await read_lease(store, run_key)) and datetime.fromisoformat(lease.renewed) <= expires:
        assert time.monotonic() < deadline, "the lease is not renewed"
        await asyncio.sleep(0.05)
    with pytest.raises(RunBusy):
        await LeaseFile.take(store, "another-run", run_key, {})


@pytest.mark.usefixtures("prefect_server")
async def test_a_blocked_event_loop_does_not_lose_the_run(tmp_path: Path) -> None:
    await blocking(str(tmp_path), "key")
    lease = await read_lease(ArtifactStore(str(tmp_path)), "key")
    assert lease
    assert lease.released


async def test_no_late_renewal_undoes_a_release(store: ArtifactStore) -> None:
    lost: list[FathomError] = []
    for _ in range(5):
        keeper = LeaseKeeper(await LeaseFile.take(store, "run-1", "key", {}, seconds=0.01), lost.append)
        await asyncio.sleep(0.02)
        await keeper.release()
        lease = await read_lease(store, "key")
        assert lease
        assert lease.released
    assert lost == []


async def test_who_was_replaced_is_told_and_releases_nothing(store: ArtifactStore) -> None:
    lost: asyncio.Queue[FathomError] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    held = await LeaseFile.take(store, "run-1", "key", {}, seconds=1)
    await forge(store, host="elsewhere", renewed=(datetime.now(UTC) - timedelta(seconds=2)).isoformat())
    await take(store)
    keeper = LeaseKeeper(held, lambda reason: loop.call_soon_threadsafe(lost.put_nowait, reason))
    assert isinstance(await lost.get(), RunBusy)
    await keeper.release()
    with pytest.raises(RunBusy):
        await take(store)


@pytest.mark.parametrize("key", ["my-key_1", "A key", "ä" * 200, "../../etc", "a/b", "x" * 81])
def test_results_of_any_key_lie_in_one_folder_of_their_own(key: str) -> None:
    name = result_key("id", key)
    assert name.replace("_", "").replace("-", "").isalnum() and len(name) < 100
    assert result_key("id", f"{key}!") != name
    assert result_key("11111111-2222-3333-4444-555555555555", None) == result_key(
        "new-id", "11111111-2222-3333-4444-555555555555"
    )


# -- stopped by somebody ----------------------------------------------------------------------------------------------


def state_of(server: PrefectServer, run_id: str) -> dict[str, Any]:
    with asking(server.api_url) as client:
        state: dict[str, Any] = client.get(f"/flow_runs/{run_id}").json()["state"]
        return state


def listed(cli: FathomCLI, env: dict[str, str], root: str | Path) -> dict[str, str]:
    rows: list[dict[str, str]] = json.loads(cli(["runs", "--json", "--artifacts", str(root)], env).stdout)
    return {row["run_id"]: row["state"] for row in rows}


def cancel(server: PrefectServer, run_id: str) -> None:
    """What the UI and `prefect flow-run cancel` do."""
    state = {"state": {"type": "CANCELLING", "name": "Cancelling"}}
    with asking(server.api_url) as client:
        client.post(f"/flow_runs/{run_id}/set_state", json=state)


async def test_one_thread_watches_all_runs_of_a_process(prefect_server: PrefectServer) -> None:
    stopped: asyncio.Queue[tuple[int, FathomError]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def stop(number: int, reason: FathomError) -> None:
        loop.call_soon_threadsafe(stopped.put_nowait, (number, reason))

    async with get_client() as client:
        created = [await client.create_flow_run(blocking, state=Running()) for _ in range(MANY + 2)]
    with ExitStack() as runs:
        for number, run in enumerate(created):
            runs.enter_context(watched(run.id, partial(stop, number)))
        cancel(prefect_server, str(created[3].id))
        number, reason = await stopped.get()
        assert (number, type(reason)) == (3, RunCancelled)
        assert [thread.name for thread in threading.enumerate()].count("watch") == 1
    while not stopped.empty():
        assert stopped.get_nowait()[0] == 3


def test_cancelling_stops_the_spending_and_keeps_what_there_is(
    stubs: Stubs,
    env: dict[str, str],
    forked: Forked,
    prefect_server: PrefectServer,
    fathom_cli: FathomCLI,
    undisturbed: dict[str, bytes],
    tmp_path: Path,
) -> None:
    process = forked(env, "research", QUERY, *QUICK, "--artifacts", str(tmp_path / "1"))
    kills = Kills(stubs)
    order = ["cancel", "latest", "--as", "ann", "--artifacts", str(tmp_path / "1")]

    def cancel_it() -> None:
        order[1] = flow_runs(prefect_server.api_url)[0]["id"][:8]
        assert f"Cancelled as ann. To continue the run: fathom resume {order[1]}" in fathom_cli(order, env).stdout

    moment = kills.after(8, cancel_it)
    out, err = process.communicate(timeout=120)
    run_id = flow_runs(prefect_server.api_url)[0]["id"]
    assert (process.returncode, out) == (130, ""), err
    assert "E5005" in err
    assert f"fathom resume {run_id}" in err.splitlines()[-1]
    assert len([record for record in stubs.requests if record.started > moment]) <= AT_ONCE
    state = state_of(prefect_server, run_id)
    assert state["type"] == "CANCELLED"
    assert f"fathom resume {run_id[:8]}" in state["message"]
    (folder,) = (tmp_path / "1/research_artifacts").iterdir()
    assert {"plan.json", "notes.json", "run.json"} <= {path.name for path in folder.iterdir()}
    assert list(folder.glob("*__step*.json"))
    assert listed(fathom_cli, env, tmp_path / "1")[run_id] == "cancelled"
    assert f"The run {run_id[:8]} had ended already" in fathom_cli(order, env).stdout

    result = finish(forked(env, "resume", run_id, "--json", "--quiet"))
    assert (result["run_id"], result["status"]) == (run_id, "complete")
    assert kills.repeated() == []
    assert left_behind(result) == undisturbed


async def test_a_run_whose_process_ended_before_it_began_is_interrupted(
    env: dict[str, str], prefect_server: PrefectServer, fathom_cli: FathomCLI, tmp_path: Path
) -> None:
    flow_run = await local.create(QUERY, ResearchSettings(profile="quick", artifacts=str(tmp_path)))
    run_id = str(flow_run.id)
    assert listed(fathom_cli, env, tmp_path)[run_id] == "interrupted"
    shown = fathom_cli(["show", run_id[:8], "--artifacts", str(tmp_path)], env)
    assert f"no files of the run {run_id[:8]}, which is interrupted. (fathom resume {run_id[:8]} " in shown.stderr
    await reschedule(flow_run)  # a resuming process gets no further than this
    assert listed(fathom_cli, env, tmp_path)[run_id] == "interrupted"
    resumed = fathom_cli(["resume", run_id[:8], "--artifacts", str(tmp_path)], env)
    assert f"Question: {QUERY}" in resumed.stderr
    assert listed(fathom_cli, env, tmp_path)[run_id] in {"complete", "insufficient_evidence"}


def test_a_process_that_is_told_to_end_leaves_a_run_to_resume_with_the_key_it_needs(
    stubs: Stubs,
    env: dict[str, str],
    forked: Forked,
    prefect_server: PrefectServer,
    fathom_cli: FathomCLI,
    tmp_path: Path,
) -> None:
    process = forked(env, "research", QUERY, *QUICK, "--artifacts", str(tmp_path))
    kills = Kills(stubs)
    kills.after(6, lambda: process.send_signal(signal.SIGTERM))
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (143, ""), err
    run_id = flow_runs(prefect_server.api_url)[0]["id"]
    assert err.splitlines()[-1] == f"fathom: the run can be continued: fathom resume {run_id}"
    assert listed(fathom_cli, env, tmp_path)[run_id] == "interrupted"
    without = {name: value for name, value in env.items() if name != "OPENAI_API_KEY"}
    refused = fathom_cli(["resume", run_id, "--quiet"], without)
    assert refused.returncode == 2, refused.stderr
    assert "E4003" in refused.stderr and "OPENAI_API_KEY" in refused.stderr
    result = finish(forked(env, "resume", run_id[:13], "--json", "--quiet"))
    assert (result["run_id"], result["status"]) == (run_id, "complete")
    assert kills.repeated() == []


def test_a_run_has_one_process_at_a_time(
    stubs: Stubs,
    env: dict[str, str],
    forked: Forked,
    prefect_server: PrefectServer,
    fathom_cli: FathomCLI,
    tmp_path: Path,
) -> None:
    stubs.settings.suggests, stubs.settings.held = False, "researcher"
    key = ["--run-key", "shared", "--artifacts", str(tmp_path)]
    process = forked(env, "research", QUERY, *QUICK, *key)
    kills = Kills(stubs)
    stubs.wait_for(1, "researcher", ended=False)
    run_id = flow_runs(prefect_server.api_url)[0]["id"]
    others = [forked(env, "resume", run_id), forked(env, "research", QUERY, *QUICK, *key)]
    for other in others:
        said = other.communicate(timeout=120)[1]
        assert other.returncode == 2, said
        assert "E5002" in said
        assert f"process {process.pid} on " in said
    twin = next(run for run in flow_runs(prefect_server.api_url) if run["id"] != run_id)
    assert twin["state_type"] == "CANCELLED"
    assert f"The run {run_id[:8]} is still running, in process {process.pid} on " in twin["state"]["message"]
    assert listed(fathom_cli, env, tmp_path)[run_id] == "running"
    kills.now(process.kill)
    process.communicate()
    stubs.settings.held = ""
    assert listed(fathom_cli, env, tmp_path)[run_id] == "interrupted"
    racers = [forked(env, "resume", run_id, "--json", "--quiet") for _ in range(2)]
    printed = [racer.communicate(timeout=120)[0] for racer in racers]
    assert sorted(racer.wait() for racer in racers) == [0, 2]
    assert json.loads("".join(printed))["run_id"] == run_id
    assert kills.repeated() == []
    assert len({record.fingerprint for record in stubs.requests[2:]}) == len(stubs.requests[2:])


# -- machines and servers that are gone -------------------------------------------------------------------------------


@pytest.fixture
def own_server(new_database: Path, tmp_path: Path) -> Iterator[OwnServer]:
    server = OwnServer(tmp_path / "prefect", quiet_port())
    (tmp_path / "prefect").mkdir()
    shutil.copy(new_database, tmp_path / "prefect")
    server.start()
    yield server
    server.kill()


def test_a_run_and_a_batch_that_works_itself_outlive_their_server(
    stubs: Stubs, env: dict[str, str], forked: Forked, own_server: OwnServer, fathom_cli: FathomCLI, tmp_path: Path
) -> None:
    env |= own_server.env
    (tmp_path / "questions.txt").write_text("What is a slot?\nHow are descriptors called?\n", encoding="utf-8")
    batch = ["batch", str(tmp_path / "questions.txt"), *QUICK, "--artifacts", str(tmp_path), "--run-key", "lost"]
    process = forked(env, "research", QUERY, *QUICK, "--artifacts", str(tmp_path))
    asked = forked(env, *batch)
    kills = Kills(stubs)
    stubs.settings.held = "outline"
    stubs.wait_for(3, "outline", ended=False)
    run_id = next(run["id"] for run in flow_runs(own_server.api_url) if run["parameters"].get("query") == QUERY)
    time.sleep(COMMIT_SECONDS)
    kills.now(own_server.kill)
    stubs.settings.held = ""
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    assert "E4006" in err
    assert f"fathom resume {run_id}" in err.splitlines()[-1]
    assert len(err.splitlines()) == 2
    _, err = asked.communicate(timeout=120)
    assert (asked.returncode, "E4006" in err) == (1, True)
    assert err.splitlines()[-1].endswith("--run-key lost")
    own_server.start()
    assert listed(fathom_cli, env, tmp_path)[run_id] == "interrupted"
    again = forked(env, *batch, "--json")
    result = finish(forked(env, "resume", run_id, "--json", "--quiet"))
    assert (result["run_id"], result["status"]) == (run_id, "complete")
    assert finish(again)["ended"] == {"complete": 2}
    assert kills.repeated() == []


@pytest.mark.parametrize("answered", [0, 7])
def test_a_run_goes_on_where_its_machine_is_gone(
    stubs: Stubs,
    env: dict[str, str],
    forked: Forked,
    prefect_server: PrefectServer,
    moto_s3: Bucket,
    fathom_cli: FathomCLI,
    undisturbed: dict[str, bytes],
    answered: int,
) -> None:
    """Killed before it had a folder, and later; nothing is left but the bucket: the server knows no such run."""
    env |= moto_s3.env
    bucket = ["--artifacts", moto_s3.url]
    if not answered:
        stubs.settings.llm_delay = 30
    process = forked(env, "research", QUERY, *QUICK, *bucket)
    kills = Kills(stubs)
    if not answered:
        stubs.wait_for(1, "planner", ended=False)
    kills.after(answered, process.kill)
    process.communicate()
    run_id = flow_runs(prefect_server.api_url)[0]["id"]
    with asking(prefect_server.api_url) as client:
        client.delete(f"/flow_runs/{run_id}")
    stubs.settings.llm_delay = 0

    shown = json.loads(fathom_cli(["show", run_id[:8], "--json", *bucket], env).stdout)
    assert (shown["run_id"], shown["query"], shown["result"]) == (run_id, QUERY, None)
    assert f"fathom resume {run_id[:8]}" in fathom_cli(["show", run_id[:8], *bucket], env).stdout
    assert listed(fathom_cli, env, moto_s3.url)[run_id] == "interrupted"

    result = finish(forked(env, "resume", run_id, "--json", "--quiet", *bucket))
    assert (result["run_id"], result["status"]) == (run_id, "complete")
    assert kills.repeated() == []
    assert objects(result["artifacts"]) == undisturbed
    if answered:  # a finished run is reported again
        assert listed(fathom_cli, env, moto_s3.url)[run_id] == "complete"
        assert finish(forked(env, "resume", run_id[:8], "--json", "--quiet", *bucket)) == result


def objects(folder: str) -> dict[str, bytes]:
    import fsspec

    s3 = fsspec.filesystem("s3", use_listings_cache=False, skip_instance_cache=True)
    names = {name.rpartition("/")[2]: name for name in s3.ls(folder, detail=False)}
    return {name: s3.cat_file(path) for name, path in names.items() if not is_own(name)}


# -- what is not taken up ---------------------------------------------------------------------------------------------


class Runs:
    """Runs with changed settings under one key, each with the requests that it made."""

    def __init__(self, stubs: Stubs, root: Path) -> None:
        self.stubs = stubs
        self._root = root

    async def requests(self, key: str, **changed: Any) -> Counter[str]:
        """Run and return what was asked: the roles' names, and `search`."""
        before = len(self.stubs.requests)
        await kept(self._root, run_key=key, **{"profile": "quick", "fresh": True, **changed})
        return Counter(record.role for record in self.stubs.requests[before:])

    async def alone(self, **changed: Any) -> Counter[str]:
        """Return what a run asks that finds nothing to take up."""
        before = len(self.stubs.requests)
        await investigated(self._root / "alone", **{"profile": "quick", "fresh": True, **changed})
        return Counter(record.role for record in self.stubs.requests[before:])


@pytest.fixture
def runs(providers: Stubs, tmp_path: Path, home: Path) -> Runs:
    shrink(providers)
    return Runs(providers, tmp_path)


async def test_what_a_call_does_not_read_repeats_no_call(runs: Runs) -> None:
    whole = await runs.requests("one-key")
    written = {role: count for role, count in whole.items() if role in ("outline", "section")}
    assert written and whole != written
    assert not await runs.requests("one-key", concurrency=2, model_calls={"seconds": 60}, sufficiency=3)
    for other in ("openai/second", "openai/third"):
        assert await runs.requests("one-key", role_models={"reporter": {"model": other}}) == written
    assert set(await runs.requests("one-key", report={"words": 400})) <= written.keys()
    assert not await runs.requests("one-key")


@pytest.mark.parametrize("changed", [{"role_models": {"compressor": SMALL}}, {"budget": {"max_tokens": 145_000}}])
async def test_a_resumed_run_shows_the_compressor_the_same(runs: Runs, changed: dict[str, Any]) -> None:
    """In several requests, and although little of the budget is left when it is resumed."""
    runs.stubs.settings.page_bytes, runs.stubs.settings.results = 20_000, 0
    first = await runs.requests("one-key", **changed)
    assert first["compressor"]
    assert not await runs.requests("one-key", **changed)


async def test_a_changed_prompt_repeats_only_its_role(
    runs: Runs, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = await runs.requests("one-key")
    folder = tmp_path / "prompts"
    shutil.copytree(prompts.FOLDER, folder)
    (folder / "editor.md").write_text("A role that no call of the run has.")
    with (folder / "section.md").open("a") as file:
        file.write("\n")
    monkeypatch.setattr(prompts, "FOLDER", folder)
    prompts.prompt_hashes.cache_clear()
    request.addfinalizer(prompts.prompt_hashes.cache_clear)
    assert await runs.requests("one-key") == Counter(section=whole["section"])


async def test_a_changed_setting_reuses_no_result_that_it_makes_wrong(runs: Runs) -> None:
    runs.stubs.settings.results = 0  # a search finds as many as are asked for
    await runs.requests("one-key")
    cases: list[tuple[dict[str, Any], set[str], set[str]]] = [
        ({"max_results": 3}, {"search", "compressor"}, {"planner"}),
        ({"model": "openai/other"}, {"planner", "researcher", "compressor", "section"}, {"search"}),
        ({"compression": {"summary_tokens": 400}}, {"compressor"}, {"planner", "search"}),
    ]
    for changed, repeated, taken_up in cases:
        alone, again = await runs.alone(**changed), await runs.requests("one-key", **changed)
        assert {role: again[role] for role in repeated} == {role: alone[role] for role in repeated}
        assert not taken_up & again.keys()
    assert not await runs.requests("one-key")
