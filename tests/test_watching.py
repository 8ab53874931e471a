"""A watched question on a real server: a page changes between runs, and a webhook gets one call with what changed."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.blocks.notifications import SlackWebhook
from prefect.client.orchestration import get_client
from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule
from prefect.events import emit_event
from prefect.states import Cancelled, Pending, Running

from fathom.changes.model import Change, Changes, Compared, Difference, Place, Statement
from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput, RunBusy
from fathom.evidence.verify import verify_run
from fathom.flows import notifying, watches
from fathom.flows.execution import local, resuming
from fathom.flows.runs.comparing import runs_of
from fathom.flows.runs.endings import is_before
from fathom.flows.runs.stored import files_of
from fathom.models import Ending, RunResult
from fathom.run.engine import RunStart
from fathom.storage.runs import StoredRun
from fathom.storage.store import ArtifactStore
from fathom.tasks import events
from tests.conftest import FathomCLI, PrefectServer
from tests.processes import asking

QUERY = "What is known about the Norden plant, its power and its people?"
PAGE = (
    "# The Norden plant\n\nThe Norden plant produces 412 MW of power. The Norden plant employs 120 people in Tarn.\n\n"
    "The head of the Norden plant is Ada Holm.\n"
)


class Hook:
    """A server that keeps what is posted to it."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        kept = self.calls

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                kept.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?key=hush-hush-hush"

    def wait(self, calls: int) -> None:
        deadline = time.monotonic() + 120
        while len(self.calls) < calls and time.monotonic() < deadline:
            time.sleep(0.1)


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def told(server: PrefectServer, name: str) -> list[dict[str, Any]]:
    """Return the events of a watch, the earliest first, once the server has all that this process has sent."""
    last = str(uuid4())
    emit_event("fathom.test.last", {"prefect.resource.id": f"test.{last}"}, payload={"watch": ""})
    wanted = {"filter": {"event": {"prefix": ["fathom."]}}, "limit": 50}
    deadline = time.monotonic() + 60
    with asking(server.api_url) as client:
        while True:
            found = client.post("/events/filter", json=wanted).json()["events"]
            if any(event["resource"]["prefect.resource.id"] == f"test.{last}" for event in found):
                return [event for event in reversed(found) if event["payload"]["watch"] == name]
            assert time.monotonic() < deadline, found
            time.sleep(0.2)


@pytest.mark.usefixtures("home")
async def test_a_change_is_told_once_and_no_change_is_not(
    prefect_server: PrefectServer, hook: Hook, tmp_path: Path, fathom_cli: FathomCLI
) -> None:
    docs, root = tmp_path / "docs", tmp_path / "store"
    docs.mkdir()
    page = docs / "plant.md"
    page.write_text(PAGE, encoding="utf-8")
    arguments = ["--name", "norden", "--docs", str(docs), "--profile", "quick", "--artifacts", str(root)]
    soon = fathom_cli(["watch", "add", QUERY, "--every", "soon", "--artifacts", str(root)], env=prefect_server.env)
    assert (soon.returncode, soon.stderr.splitlines()) == (
        2,
        ["fathom: E4001 --every soon: it must be a length of time, such as 30m, 6h, 1d or 2w."],
    )
    notify = ["--notify", hook.url, "--only-changes"]
    made = fathom_cli(["watch", "add", QUERY, "--every", "1d", *arguments, *notify, "--json"], env=prefect_server.env)
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["schedule"] == "every 1 day"
    with pytest.raises(InvalidInput, match="already"):
        await watches.add("norden", QUERY, ResearchSettings(), watches.schedule_of("1d", None, "UTC"))
    every = await notifying.add("norden-all", ["completed", "failed"], webhook=hook.url, watch="norden")
    assert (every.on, every.watch, every.to) == (["completed", "failed"], "norden", "webhook")

    async def run() -> RunResult:
        return await local.execute(await watches.start("norden"))

    first, second = await run(), await run()
    page.write_text(PAGE.replace("412 MW", '"430" MW'), encoding="utf-8")
    flow_run = await watches.start("norden")
    third = await local.execute(flow_run)
    page.write_text("Nothing of interest.", encoding="utf-8")
    fourth = await run()
    assert (first.changes, second.changes) == ("", "nothing changed, 3 unchanged")
    assert third.changes == "1 changed, 2 unchanged"
    assert (fourth.status, fourth.changes) == (
        Ending.insufficient_evidence,
        "no report this time; the one before had 3 claims",
    )

    hook.wait(6)
    heard = [call["event"].removeprefix("fathom.") for call in hook.calls]
    # Each run told one webhook how it ended; the other one heard of the two changes only.
    assert sorted(heard) == ["answer.changed"] * 2 + ["run.completed"] * 3 + ["run.failed"]
    changed, lost = (call for call in hook.calls if call["event"] == "fathom.answer.changed")
    assert (changed["run_id"], changed["question"], changed["watch"]) == (third.run_id, QUERY, "norden")
    assert changed["changes"]["counts"]["changed"] == 1
    assert changed["changes"]["compared_with"] == second.run_id
    (claim,) = changed["changes"]["claims"]
    assert claim["values"] == [{"about": "number", "before": "412 MW", "after": "430"}]
    assert '"430" MW' in claim["after"]["sentence"]
    assert claim["before"]["sources"] == ["docs:docs/plant.md"]
    assert lost["ending"] == "insufficient_evidence"

    # A run that ends in the same way again has told that already.
    async with get_client() as client:
        await client.set_flow_run_state(flow_run.id, Pending(), force=True)
        flow_run = await client.read_flow_run(flow_run.id)
    assert (await local.execute(flow_run)).changes == third.changes
    folder = Path(third.artifacts)
    assert {"changes.json", "changes.md", "changes.html"} <= {path.name for path in folder.iterdir()}
    store = ArtifactStore(str(root))
    runs = await runs_of(store, lambda run: run.watch_name == "norden")
    assert runs == sorted(runs, key=lambda one: one.run.started, reverse=True)  # to the second: two may be equal
    assert {one.result.changes for one in runs if one.result} == {fourth.changes, third.changes, second.changes, ""}
    assert verify_run(await files_of(runs[1].run)).ok
    history = ["watch", "history", "norden", "--artifacts", str(root)]
    listed = fathom_cli(history, env=prefect_server.env).stdout
    assert "Changed  412 MW → 430\n" in listed
    of_json = json.loads(fathom_cli([*history, "--json"], env=prefect_server.env).stdout)
    by_run = {one["run_id"]: one["comparison"] for one in of_json}
    assert by_run[third.run_id] == json.loads((folder / "changes.json").read_bytes())
    assert by_run[first.run_id] is None
    of_watch = told(prefect_server, "norden")
    names = [event["event"] for event in of_watch]
    assert (names.count("fathom.run.started"), names.count("fathom.answer.changed")) == (5, 2)
    assert not any("hush" in json.dumps(event) for event in of_watch)

    removed = fathom_cli(["watch", "remove", "norden"], env=prefect_server.env)
    assert "norden, norden-all" in removed.stdout
    assert await notifying.all_notifications() == []
    with pytest.raises(InvalidInput, match="no watch"):
        await watches.find("norden")
    assert len(await runs_of(store, lambda run: run.watch_name == "norden")) == 4
    assert len(hook.calls) == 6

    # Somebody else may add a watch of that name with the same question, and is told nothing of what the first one read.
    page.write_text(PAGE, encoding="utf-8")
    own = {"profile": "quick", "docs": [str(docs)], "artifacts": str(root)}
    await watches.add("norden", QUERY, ResearchSettings.model_validate(own), watches.schedule_of("1d", None, "UTC"))
    alone = fathom_cli(["watch", "run", "--quiet"], env=prefect_server.env).stdout  # the only watch
    assert "This watch has no earlier report to compare with" in alone
    # One that is made from a report is compared with it from its first run on, whatever that report was asked.
    newest = (await runs_of(store, lambda run: run.watch_name == "norden"))[0].run
    suden, report = watches.schedule_of("1d", None, "UTC"), newest.run_id
    await watches.add("suden", "What is the Norden plant?", ResearchSettings.model_validate(own), suden, report=report)
    page.write_text(PAGE.replace("412 MW", "430 MW"), encoding="utf-8")
    shown = fathom_cli(["watch", "run", "suden", "--quiet"], env=prefect_server.env).stdout
    assert "no earlier report" not in shown
    assert "\nSince the run before: 1 changed, 2 unchanged.\nChanged  412 MW → 430 MW\n" in shown
    refused = fathom_cli(["watch", "run"], env=prefect_server.env)
    assert refused.returncode == 2
    assert "There are 2 watches: norden and suden." in refused.stderr
    await watches.remove(await watches.find("suden"))
    await watches.remove(await watches.find("norden"))


@pytest.mark.usefixtures("prefect_server")
async def test_a_watch_is_a_deployment_with_a_schedule(tmp_path: Path) -> None:
    given = {"profile": "quick", "artifacts": str(tmp_path), "people": {"approve": "plan"}}
    settings = ResearchSettings.model_validate(given)
    schedule = watches.schedule_of(None, "0 6 * * 1-5", "Europe/Berlin")
    made = await watches.add("mornings", QUERY, settings, schedule)
    assert (made.schedule, made.state) == ("0 6 * * 1-5 (Europe/Berlin)", "active")
    assert made.parameters == {
        "query": QUERY,
        "watch": made.key,
        "settings": {
            "profile": "quick",
            "artifacts": str(tmp_path),
            "fresh": True,
            "people": {"clarify": "never", "approve": "never"},
        },
    }
    assert re.fullmatch("mornings~[0-9a-f]{8}", made.key)
    await watches.pause(made)
    assert {one.key: (one.name, one.state) for one in await watches.all_watches()}[made.key] == ("mornings", "paused")
    await watches.resume(made)
    assert (await watches.find("watch-mornings")).state == "active"
    async with get_client() as client:
        deployment = await client.read_deployment(UUID(made.deployment_id))
        limit, options = deployment.global_concurrency_limit, deployment.concurrency_options
        assert limit and options and (limit.limit, options.collision_strategy.value) == (1, "CANCEL_NEW")
        # Two runs at the same time would tell the same changes.
        flow_run = await watches.start("mornings")
        await client.set_flow_run_state(flow_run.id, Running(), force=True)
        with pytest.raises(RunBusy, match="in progress"):
            await watches.start("mornings")
        await client.set_flow_run_state(flow_run.id, Cancelled(), force=True)
    # A name may begin as all deployments of watches do, and is not taken for another one's.
    other = await watches.add("watch-mornings", "Another question?", settings, schedule)
    assert (other.name, (await watches.find("watch-mornings")).question) == ("watch-mornings", "Another question?")
    await watches.remove(other)
    assert (await watches.find("watch-mornings")).question == QUERY
    await watches.remove(made)
    assert not {made.key, other.key} & {one.key for one in await watches.all_watches()}


@pytest.mark.filterwarnings("ignore:'imghdr':DeprecationWarning")  # of apprise
@pytest.mark.usefixtures("prefect_server")
async def test_a_slack_channel_is_told_by_its_block() -> None:
    block: Any = SlackWebhook(url="https://hooks.slack.com/services/T1/B1/abc")
    await block.save("research", overwrite=True)
    made = await notifying.add("slack", ["changed"], slack_block="research")
    assert (made.to, await notifying.all_notifications()) == ("Slack block research", [made])
    await notifying.remove("slack")


@pytest.mark.usefixtures("prefect_server", "home")
async def test_a_run_that_breaks_tells_so(prefect_server: PrefectServer, tmp_path: Path) -> None:
    settings = ResearchSettings(model="openai/none", artifacts=str(tmp_path))
    flow_run = await local.create(QUERY, settings, watch="broken")
    with pytest.raises(Exception, match="OPENAI_API_KEY"):
        await local.execute(flow_run)
    for _ in range(300):
        if found := told(prefect_server, "broken"):
            break
        await asyncio.sleep(0.1)
    (event,) = found
    assert (event["event"], event["payload"]["ending"]) == ("fathom.run.failed", "failed")
    assert "OPENAI_API_KEY" in event["payload"]["reason"]
    # Tried again, it breaks in the same way, which was told. Where only the store knows it, it belongs to its watch.
    async with get_client() as client:
        await client.set_flow_run_state(flow_run.id, Pending(), force=True)
        flow_run = await client.read_flow_run(flow_run.id)
        with pytest.raises(Exception, match="OPENAI_API_KEY"):
            await local.execute(flow_run)
        await client.delete_flow_run(flow_run.id)
    (marker,) = tmp_path.glob(f".results/{flow_run.id}/told/*.json")
    assert json.loads(marker.read_bytes()) == {"run_id": str(flow_run.id), "ending": "failed"}
    assert (await resuming.find(str(flow_run.id), str(tmp_path))).parameters["watch"] == "broken"
    assert len(told(prefect_server, "broken")) == 1


def test_only_runs_of_the_same_question_are_compared() -> None:
    """A watch that was removed and made again under its name may ask something else."""
    own: dict[str, Any] = {"run_id": "2", "query": QUERY, "started": "2026-11-23T06:00:00+00:00", "watch": "w~1"}
    start = RunStart.model_construct(**own)
    earlier = StoredRun(ArtifactStore("memory://x"), "", "1", "1", QUERY, "2026-11-22T06:00:00+00:00", watch="w~1")
    report = replace(earlier, query="Why?", watch="")
    assert is_before(report, start.model_copy(update={"watch": "w~1~1"})) and not is_before(report, start)
    assert is_before(earlier, start)
    assert not is_before(replace(earlier, query="Another question?"), start)
    assert not is_before(replace(earlier, watch="w~2"), start)


def test_a_page_calls_no_channel_and_disguises_no_address() -> None:
    evil = "Costs\u202e 9 <!channel>\n<https://evil.example/|your bank> @here"
    said = Statement(
        sentence=evil, passages=[evil], sources=[Place(source_id="a", url="https://a.example", title=evil)]
    )
    values = [Difference(about="words", before="", after=evil)]
    run = Compared(run_id="1", started="2026-11-23")
    change = Change(kind="changed", after=said, differences=values)
    changes = Changes(query="Q", before=run, after=run, changes=[change])
    text = events.text_of({"ending": "complete", "reason": "", "report": "", "folder": "here"}, changes)
    assert len(text.splitlines()) == 3 and "\u202e" not in text
    slack = events.for_slack({"question": "Who <@U1>?", "text": text})
    assert not set("<>|!@") & set("".join(slack.values())) and "＜！channel＞" in slack["text"]
    (item,) = events.changes_payload(changes, "here")["claims"]
    assert "\n" not in item["after"]["sentence"] + item["values"][0]["after"]


def test_schedules_are_checked() -> None:
    assert [watches.name_of(one) for one in ("Watch prices of X", "watch-a_b", "Plan: prices?")] == [
        "prices-of-x",
        "a-b",
        "plan-prices",
    ]
    every = watches.schedule_of("6H", None, "UTC")
    assert isinstance(every, IntervalSchedule) and every.interval.total_seconds() == 21_600
    assert isinstance(watches.schedule_of(None, "@daily", "UTC"), CronSchedule)
    for wrong in ((None, None, "UTC"), ("1d", "* * * * *", "UTC"), ("0d", None, "UTC")):
        with pytest.raises(InvalidInput):
            watches.schedule_of(*wrong)
    with pytest.raises(InvalidInput, match="not a schedule"):
        watches.schedule_of(None, "61 * * * *", "UTC")
    with pytest.raises(InvalidInput, match="does not exist"):
        watches.schedule_of("1d", None, "Mars/Olympus")
    with pytest.raises(InvalidInput, match="not known"):
        notifying.check_occasions(["changed,sometimes"])
    for wrong_url in ("hooks.example.org", "ftp://hooks.example.org/secret", "http://", "http://[::1"):
        with pytest.raises(InvalidInput) as refused:
            notifying.check_webhook(wrong_url)
        assert "secret" not in str(refused.value)
