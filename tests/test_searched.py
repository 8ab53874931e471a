"""A question with neither documents nor a web search is told, before it is researched, what is searched instead."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import httpx
import pytest

from fathom.models import Ending
from fathom.report.unanswered import UNANSWERED
from tests.conftest import FathomCLI, PrefectServer
from tests.inprocess import investigated
from tests.server import Served, without_worker
from tests.test_mcp_server import call, over_http

SHIPPED = "the Python language reference, which comes with Fathom"
BEFORE = f"Searching only {SHIPPED}. For your own files add --docs FOLDER (make: DOCS=FOLDER), for the web a search key"
ASKED = f"Only {SHIPPED}, is searched."
NOT_IN_IT = "What is the capital of Norway?"
IN_IT = "What is an iterator in Python?"


def test_a_command_says_it_before_the_run_however_little_it_prints(
    fathom_cli: FathomCLI, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    said = fathom_cli(["research", NOT_IN_IT], prefect_server.env)
    assert said.returncode == 3, said.stderr
    assert said.stderr.startswith(BEFORE) and "\nRun " in said.stderr
    quiet = fathom_cli(["research", NOT_IN_IT, "--quiet"], prefect_server.env)
    before, after = quiet.stderr.splitlines()
    assert before.startswith(f"fathom: {BEFORE}") and after.startswith(f"fathom: only {SHIPPED}, was searched")

    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/norway.md").write_text("# Norway\n\nThe capital of Norway is Oslo, on the Oslofjord.\n")
    own = fathom_cli(["research", NOT_IN_IT, "--docs", "notes", "--json"], prefect_server.env)
    assert (own.returncode, own.stderr) == (0, "")
    assert "searched" not in json.loads(own.stdout)


@pytest.mark.usefixtures("home")
async def test_a_report_and_its_absence_name_it(tmp_path: Path) -> None:
    told = await investigated(tmp_path, IN_IT, model="extractive")
    assert told.report and told.searched == SHIPPED
    for name in ("report.md", "report.html"):
        box = Path(told.report).with_name(name).read_text()
        assert f"searched: {SHIPPED}; add --docs FOLDER or a search key" in box

    none = await investigated(tmp_path, NOT_IN_IT, model="extractive")
    assert none.status is Ending.insufficient_evidence and none.unanswered
    assert none.reason.startswith(f"only {SHIPPED}, was searched, and nothing in it answers the question")
    assert none.unanswered.next_steps[0] == "Search your own files: add `--docs FOLDER`."
    _title, _question, heading, first, *_ = (Path(none.artifacts) / UNANSWERED).read_text().split("\n\n")
    assert heading == "## What was searched" and first.startswith(f"- {SHIPPED} (")


async def test_every_door_of_a_server_says_it_where_a_run_is_asked_for(served: Served) -> None:
    with without_worker(served) as idle:
        async with httpx.AsyncClient(base_url=idle.url, timeout=120) as client, over_http(idle) as mcp:
            [notice] = (await client.post("/api/v1/runs", json={"question": NOT_IN_IT})).json()["notices"]
            for others, body in (
                ("batches", {"questions": [NOT_IN_IT, NOT_IN_IT]}),
                ("watches", {"question": NOT_IN_IT, "every": "1d", "name": "told"}),
            ):
                assert (await client.post(f"/api/v1/{others}", json=body)).json()["notices"] == [notice]
            assert (await client.delete("/api/v1/watches/told")).status_code == 204
            assert notice.startswith(ASKED) and "`corpora`" in notice
            assert (await call(mcp, "research_start", question=NOT_IN_IT))["notices"] == [notice]
            page = await client.get("/", headers={"Accept": "text/html"})
            assert f"only {SHIPPED}, is searched" in unescape(page.text)

            said = [{"role": "user", "content": NOT_IN_IT}]
            asked = {"model": "fathom-quick", "messages": said, "stream": True}
            async with client.stream("POST", "/v1/chat/completions", json=asked) as chunks:
                told = []
                async for line in chunks.aiter_lines():
                    if line.startswith("data: {"):
                        told += [json.loads(line[6:])["choices"][0]["delta"].get("reasoning_content")]
                    if len(list(filter(None, told))) == 2:
                        break
            assert told[-1] == f"{notice}\n"

            files = {"files": ("oslo.md", b"The capital of Norway is Oslo.\n")}
            made = await client.post("/api/v1/corpora", data={"name": "fjords"}, files=files)
            assert made.is_success, made.text
            own = await client.post("/api/v1/runs", json={"question": NOT_IN_IT, "corpora": ["fjords"]})
            assert (own.status_code, own.json()["notices"]) == (202, [])


def test_the_first_event_of_a_run_says_it(served: Served) -> None:
    with httpx.Client(base_url=served.url, timeout=120) as client:
        run = client.post("/api/v1/runs", json={"question": NOT_IN_IT}).json()["links"]
        with client.stream("GET", run["events"]) as events:
            told = [json.loads(line[5:]) for line in events.iter_lines() if line.startswith("data:")]
        assert next(event["message"] for event in told if event.get("id") == 1).endswith(f" {ASKED}")
        page = unescape(client.get(run["page"], headers={"Accept": "text/html"}).text)
        assert f"Only {SHIPPED}, was searched, and nothing in it answers the question." in page
