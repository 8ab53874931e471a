"""What a person sees of a run in the Prefect UI: its state, its tags, three artifacts, its log, where the report is."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from markdown_it import MarkdownIt
from prefect.client.orchestration import get_client

from fathom.config.settings import ResearchSettings
from fathom.flows.execution import local, resuming
from fathom.flows.runs import listing
from fathom.flows.runs.endings import ending_of
from fathom.models import Ending, Report, ReportSection, RunResult, Source
from fathom.report.markdown import render_markdown
from fathom.storage.store import ArtifactStore
from tests.conftest import PrefectServer
from tests.processes import asking
from tests.stubs import Stubs

QUERY = "How do tides form on moons with liquid methane seas?"


async def run(root: Path, query: str = QUERY, **chosen: Any) -> RunResult:
    settings = ResearchSettings(artifacts=str(root), model="openai/stub", fresh=True, **chosen)
    return await local.run(query, settings)


@pytest.mark.usefixtures("prefect_server")
async def test_a_run_makes_one_client_of_each_kind() -> None:
    async with local.connected():
        assert get_client() is get_client()
        assert get_client(sync_client=True) is get_client(sync_client=True)


class Page:
    """What the server has of a run, once it has all of it."""

    def __init__(self, server: PrefectServer, run_id: str) -> None:
        self._api, self._run_id = server.api_url, run_id
        with asking(self._api) as client:
            self.run = client.get(f"/flow_runs/{run_id}").json()
        of_run = {"flow_runs": {"id": {"any_": [run_id]}}}
        self.artifacts: list[dict[str, Any]] = self._all("artifacts", of_run)

    @property
    def state(self) -> tuple[str, str, str]:
        state = self.run["state"]
        return state["type"], state["name"], state["message"]

    def artifact(self, key: str) -> dict[str, Any]:
        (found,) = [artifact for artifact in self.artifacts if artifact["key"] == key]
        return found

    async def log(self, last: str) -> list[str]:
        """Return the lines of the log, which the run's process sends in batches, once one matches."""
        wanted = {"logs": {"flow_run_id": {"any_": [self._run_id]}}, "sort": "TIMESTAMP_ASC"}
        return await self._until(lambda: [line["message"] for line in self._all("logs", wanted)], last)

    async def events(self, last: str) -> list[str]:
        """Return the last events of the run as `--watch` prints them, once one matches."""
        resource = {"any_resource": {"id": [f"prefect.flow-run.{self._run_id}"]}, "order": "DESC"}

        def told() -> list[str]:
            found = self._all("events", {"filter": resource, "limit": 50})["events"]
            return [f"{event['event']} * {event['resource'].get('prefect.resource.name')}" for event in reversed(found)]

        return await self._until(told, last)

    async def arrows(self, last: str) -> list[str]:
        """Return which task has what another made, as the run's graph draws it, once one matches."""

        def drawn() -> list[str]:
            with asking(self._api) as client:
                nodes = dict(client.get(f"/flow_runs/{self._run_id}/graph-v2").json()["nodes"])
            made = [(nodes[parent["id"]], node) for node in nodes.values() for parent in node["parents"]]
            return [f"{giving['label']} -> {taking['label']}" for giving, taking in made]

        return await self._until(drawn, last)

    def _all(self, kind: str, wanted: dict[str, Any]) -> Any:
        with asking(self._api) as client:
            return client.post(f"/{kind}/filter", json=wanted).json()

    @staticmethod
    async def _until(read: Callable[[], list[str]], last: str) -> list[str]:
        found: list[str] = []
        for _ in range(300):
            found = read()
            if any(re.search(last, line) for line in found):
                break
            await asyncio.sleep(0.2)
        return found


@pytest.mark.usefixtures("home")
async def test_a_finished_run_is_completed_and_says_where_its_report_is(
    providers: Stubs, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    providers.settings.steps, providers.settings.breadth = 2, 1
    result = await run(tmp_path)
    page = Page(prefect_server, result.run_id)
    where = f"Report: {result.artifacts}/report.html"
    assert page.state == ("COMPLETED", "Completed", f"complete. {where}")
    assert page.run["tags"] == ["complete", "openai/stub", "standard"]

    assert sorted(artifact["key"] for artifact in page.artifacts) == [
        "research-plan",
        "research-report",
        "research-sources",
    ]
    plan = page.artifact("research-plan")
    steps = json.loads(plan["data"])
    assert len(steps) > 3  # those of the second round are in the same table
    assert {step["status"] for step in steps} == {"done"}
    assert f"{len(steps)} of {len(steps)} steps finished" in plan["description"]
    assert len(json.loads(page.artifact("research-sources")["data"])) == len(result.sources)

    report = page.artifact("research-report")
    assert report["description"].endswith(f"`{result.artifacts}/report.html`")
    linked = re.findall(r"\[\\\[\d+\\\]\]\((\S+?)\)", report["data"])
    assert {source.url for source in result.sources} <= set(linked)

    told = await page.events(r"^prefect\.flow-run\.Completed")
    assert told.index(f"fathom.run.completed * {where}") < told.index(f"prefect.flow-run.Completed * {QUERY}")

    lines = await page.log(r"^Finished in state Completed")
    assert sum(line.startswith("Finished in state") for line in lines) == 1, "one line for each task hides the rest"
    assert not [line for line in lines if re.search(r'\w+="|\w+=\[|\bevent=', line)], "fields are in the audit log"
    beginnings = (re.match(r"Question|The plan|Step 1 begins|The run ends", line) for line in lines)
    assert [found[0] for found in beginnings if found] == ["Question", "The plan", "Step 1 begins", "The run ends"]
    assert where in lines

    noted = [arrow.split(" -> ") for arrow in await page.arrows("-> compress ") if "-> compress " in arrow]
    assert [took for _, took in noted] == [f"compress {call}" for call, _ in noted], "it reads the call's output alone"


@pytest.mark.usefixtures("home")
async def test_a_run_without_a_report_does_not_look_like_a_success(
    providers: Stubs, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    providers.settings.noise = "."
    result = await run(tmp_path, profile="quick")
    assert result.status is Ending.insufficient_evidence
    page = Page(prefect_server, result.run_id)
    kind, name, message = page.state
    assert (kind, name) == ("FAILED", "Failed")
    assert message == (
        "insufficient_evidence: nothing that was read answers the question. "
        f"No report; what was read: {result.artifacts}"
    )
    assert "insufficient_evidence" in page.run["tags"]
    why = page.artifact("research-report")["data"]
    assert why.startswith("# Not answered by these sources")
    assert result.artifacts in why

    async with get_client() as client:
        flow_run = await client.read_flow_run(UUID(result.run_id))
    assert ending_of(flow_run.state) is Ending.insufficient_evidence
    said: list[str] = []
    assert (await resuming.finish(flow_run, said.append)) == result, "only reported again"
    assert said == ["It had already finished: nothing is asked or read again."]
    (row,) = [row for row in await listing.latest(ArtifactStore(str(tmp_path)), 50) if row.run_id == result.run_id]
    assert row.state == "insufficient_evidence"


def test_citations_link_to_pages_and_to_nothing_else() -> None:
    """What a page calls itself or is called cannot end a link, begin one, or run anything."""
    urls = {
        "S00000a": "https://example.org/a_(b)?q=<script>\"'",
        "S00000b": "file:///home/somebody/notes.md",
        "S00000c": "javascript:alert(1)",
    }
    cited = " ".join(f"[{source_id}]" for source_id in urls)
    quoted = f"It says a[1] and [2](javascript:alert(2)). {cited}"
    report = Report(
        title="Links",
        query="Links",
        extractive=True,
        sections=[ReportSection(heading="In short", markdown=quoted, quoted=True)],
        sources=[
            Source(source_id=i, kind="web", url=url, title="[x](javascript:alert(3)) <img onerror=alert(4)>")
            for i, url in urls.items()
        ],
    )
    html = MarkdownIt().render(render_markdown(report, linked=True))
    address = "https://example.org/a_%28b%29?q=%3Cscript%3E%22'"
    assert re.findall(r'<a href="([^"]*)">([^<]*)</a>', html)[0] == (address, "[1]")
    assert set(re.findall(r'href="([^"]*)"', html)) == {address}
    assert "[2] [3]" in html
    assert "<img" not in html
    assert "a[1]" in html
    assert "](http" not in render_markdown(report).partition("## Sources")[0]


@pytest.mark.usefixtures("home")
async def test_the_time_line_of_a_run_without_a_model_shows_its_reflection_outline_and_sections(
    prefect_server: PrefectServer, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/ferry.md").write_text("# Ferry\n\nThe ferry of Norrholm carries 40 cars. It sails at nine.\n")
    settings = ResearchSettings(artifacts=str(tmp_path / "store"), docs=[str(tmp_path / "docs")], depth=2, max_steps=2)
    result = await local.run("How many cars does the ferry of Norrholm carry, and when does it sail?", settings)
    report = Report.model_validate_json(Path(result.artifacts, "report.json").read_bytes())
    expected = ["critic", "outline", *["section"] * len(report.sections)]
    shown: list[str] = []
    with asking(prefect_server.api_url) as client:
        wanted = {"flow_runs": {"id": {"any_": [result.run_id]}}, "sort": "EXPECTED_START_TIME_ASC"}
        async with asyncio.timeout(60):  # the server learns of task runs from their events, soon after
            while len(shown) < len(expected):
                runs = [one["name"] for one in client.post("/task_runs/filter", json=wanted).json()]
                shown = [name.removesuffix(" · extractive") for name in runs if name.endswith(" · extractive")]
                await asyncio.sleep(0.1)
    assert shown == expected


@pytest.mark.usefixtures("home", "prefect_server")
async def test_a_run_opens_one_connection_and_asks_the_server_nothing_that_it_knows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A request takes 10 to 100 ms, and a connection as much processor time as five task runs."""
    caplog.set_level(logging.INFO, "httpx")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/ferry.md").write_text("The ferry of Norrholm carries 40 cars.\n")
    settings = ResearchSettings(artifacts=str(tmp_path / "store"), docs=[str(tmp_path / "docs")])
    result = await local.run("How many cars does the ferry of Norrholm carry?", settings)
    asked = Counter[str]()
    for record in caplog.records:
        # What Prefect refuses with 503, while its database is busy, is sent again.
        sent = re.match(r'HTTP Request: (\S+) \S+?/api(\S+) "HTTP/1.1 (?!503)', record.getMessage())
        if record.name == "httpx" and sent:
            asked[f"{sent[1]} {sent[2].replace(result.run_id, 'ID')}"] += 1
    timed = ("POST /flow_runs/filter", "POST /logs/")
    once = {request: number for request, number in asked.items() if not request.startswith(("GET /csrf", *timed))}
    assert once["POST /flow_runs/"] == once["GET /flow_runs/ID"] == once["POST /v2/concurrency_limits/filter"] == 1
    assert "GET /admin/storage" not in once
    # The run's own, the one of the thread that looks for a cancellation, and two of Prefect's, for logs and events.
    assert sum(number for request, number in asked.items() if request.startswith("GET /csrf")) <= 4
